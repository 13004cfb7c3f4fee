//! The examples of each command's `--help`.

/// Examples by the path of the command, a line each: `heap tree`.
pub(super) const EXAMPLES: [(&str, &str); 39] = [
    (
        "about-memory",
        "about-memory heap.json.gz             the tree of a report, a dump or a recording\n\
         about-memory before.json.gz after.json.gz    the difference of two reports of one process\n\
         about-memory run -- ./program         run a program under DMD, and show its memory\n\
         about-memory top indexer              watch a running program",
    ),
    (
        "show",
        "about-memory show heap.json.gz\n\
         about-memory show indexer             a running program, by name or number\n\
         about-memory show heap.json.gz --min 1% --units auto\n\
         about-memory show heap.json.gz -v -f strings",
    ),
    (
        "diff",
        "about-memory diff before.json.gz after.json.gz\n\
         about-memory diff indexer --since before.json.gz\n\
         about-memory diff before.json.gz after.json.gz --markdown",
    ),
    (
        "tree",
        "about-memory tree indexer\n\
         about-memory tree scan.dmd.json.gz --depth 3\n\
         about-memory tree scan.dmd.json.gz -f cache",
    ),
    (
        "annotate",
        "about-memory annotate scan.dmd.json.gz                 print the patch\n\
         about-memory annotate scan.dmd.json.gz > heap.patch && patch -p1 < heap.patch\n\
         about-memory annotate scan.dmd.json.gz --apply         change the files",
    ),
    (
        "recording",
        "about-memory recording recording.gz\n\
         about-memory recording recording.gz --which peak --top 20",
    ),
    (
        "explain-rss",
        "about-memory explain-rss heap.json.gz\n\
         about-memory explain-rss before.json.gz after.json.gz    why it grew",
    ),
    (
        "page",
        "about-memory page heap.json.gz        write heap.html, and open it in the browser\n\
         about-memory page heap.dmd.json.gz    the same, on the flame graph of the heap\n\
         about-memory page serve indexer",
    ),
    ("page open", "about-memory page open before.json.gz after.json.gz"),
    (
        "page build",
        "about-memory page build before.json.gz after.json.gz -o page.html\n\
         about-memory page build indexer -o page.html --anonymize",
    ),
    (
        "page serve",
        "about-memory page serve\nabout-memory page serve indexer --port 8000\n\
         about-memory page serve before.json.gz after.json.gz",
    ),
    (
        "run",
        "about-memory run -- ./program --its --arguments\n\
         about-memory run --at-peak -- ./program    the blocks of the moment with the biggest heap\n\
         about-memory run --every 10 -o snapshots -- ./server\n\
         about-memory run --fail-above 5 -- ./program    exit status 1 if more is unreported",
    ),
    (
        "record",
        "about-memory record -- ./program\n\
         DMD=--mode=live about-memory record -o all.rec -- ./program    every block\n\
         about-memory record indexer --for 10s",
    ),
    ("preload", "about-memory preload -o libdmd_preload.so"),
    ("ps", "about-memory ps\nabout-memory ps --quick --json"),
    ("top", "about-memory top indexer\nabout-memory top 4711 --every 500ms"),
    (
        "snapshot",
        "about-memory snapshot indexer -o heap.json.gz\n\
         about-memory snapshot 4711 -o heap.json.gz --dump\n\
         about-memory snapshot indexer -o heap.json.gz --every 1min --keep 60",
    ),
    ("minimize", "about-memory minimize indexer"),
    (
        "track",
        "about-memory track indexer --mode=live\n\
         about-memory track indexer --mode=profile\n\
         about-memory track indexer --stop",
    ),
    ("attach", "about-memory attach 4711\nabout-memory attach nginx -- --mode=profile"),
    (
        "inspect",
        "about-memory inspect 4711\n\
         about-memory inspect core.4711 --save heap.dmd.json.gz",
    ),
    (
        "log",
        "about-memory log indexer --follow\n\
         about-memory log indexer --for 10s --thread worker --frames 8\n\
         about-memory log indexer --sample-bytes 1000000 --json",
    ),
    (
        "call",
        "about-memory call indexer           the commands that it has\nabout-memory call indexer status",
    ),
    (
        "heap",
        "about-memory heap heap.dmd.json.gz --by type\n\
         about-memory heap diff before.dmd.json.gz after.dmd.json.gz",
    ),
    (
        "heap tree",
        "about-memory heap tree heap.dmd.json.gz\n\
         about-memory heap tree heap.dmd.json.gz --by type,stack --only unreported\n\
         about-memory heap tree recording.gz --at peak",
    ),
    (
        "heap diff",
        "about-memory heap diff before.dmd.json.gz after.dmd.json.gz\n\
         about-memory heap diff recording.gz --from 1.5 --to peak\n\
         about-memory heap diff snapshots      the first and the last dump of a folder",
    ),
    (
        "heap census",
        "about-memory heap census heap.dmd.json.gz --by type,stack:3\n\
         about-memory heap census indexer --by reporter --csv",
    ),
    (
        "heap coverage",
        "about-memory heap coverage heap.dmd.json.gz\nabout-memory heap coverage heap.dmd.json.gz --markdown",
    ),
    (
        "heap dominators",
        "about-memory heap dominators scan.dmd.json.gz\n\
         about-memory heap dominators scan.dmd.json.gz --by type",
    ),
    (
        "heap why-alive",
        "about-memory heap why-alive scan.dmd.json.gz --type Page\n\
         about-memory heap why-alive scan.dmd.json.gz --block 7f3a5c000b20",
    ),
    (
        "heap records",
        "about-memory heap records heap.dmd.json.gz\n\
         about-memory heap records heap.dmd.json.gz --explain --top 20",
    ),
    (
        "export",
        "about-memory export heap.dmd.json.gz --to pprof -o heap.pb.gz\n\
         about-memory export recording.gz --to firefox-profiler -o profile.json\n\
         about-memory export heap.dmd.json.gz --to svg -o flame.svg",
    ),
    ("metrics", "about-memory metrics heap.json.gz\nabout-memory metrics indexer"),
    ("symbolicate", "about-memory symbolicate heap.dmd.json.gz -o with-names.dmd.json.gz"),
    (
        "check",
        "about-memory check heap.json.gz --budget budget.toml\n\
         about-memory check heap.json.gz --budget budget.toml --bless",
    ),
    ("agent", "about-memory agent --every 60s --to file:///srv/memory --spool /var/spool/memory"),
    ("fleet", "about-memory fleet growth dataset"),
    (
        "completions",
        "about-memory completions bash > ~/.local/share/bash-completion/completions/about-memory\n\
         about-memory completions zsh > ~/.zfunc/_about-memory    with `fpath+=~/.zfunc` before compinit\n\
         about-memory completions fish > ~/.config/fish/completions/about-memory.fish\n\
         about-memory completions powershell >> $PROFILE",
    ),
    ("man", "about-memory man heap tree | man -l -\nabout-memory man -o ~/.local/share/man/man1"),
];
