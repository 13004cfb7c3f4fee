//! The ten tasks, each with our way, and one for each peer that can answer.

use super::scene::Service;

/// A question that a user has.
pub(super) struct Task {
    pub(super) question: &'static str,
    /// The state that the user begins in.
    pub(super) given: &'static str,
    /// The program that runs meanwhile.
    pub(super) service: Service,
    /// Our way, then those of peers.
    pub(super) ways: &'static [Way],
    /// A sentence on the peers that cannot answer.
    pub(super) without: &'static str,
}

/// Lines that lead to the answer.
pub(super) struct Way {
    pub(super) tool: &'static str,
    /// Programs that must be installed, each with its package.
    pub(super) needs: &'static [(&'static str, &'static str)],
    /// Lines that make the files that are given. They are not counted.
    pub(super) before: &'static [&'static str],
    /// The lines that the user types.
    pub(super) lines: &'static [&'static str],
    /// The place of the answer.
    pub(super) answer: Answer,
}

/// The place of an answer.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// In what the lines print: all of these words.
    Printed(&'static [&'static str]),
    /// In a file that the lines write, for a browser: all of these words.
    File(&'static str, &'static [&'static str]),
    /// In the data of a page of ours that the lines write, which opens on a flame graph.
    Page(&'static str, &'static [&'static str]),
    /// In a window, or after a session that Ctrl-C ends. It is not run here: its keystrokes count,
    /// its time is not known.
    Window,
}

impl Way {
    /// Returns the number of keys that are pressed: the characters, and Enter after each line.
    pub(super) fn keystrokes(&self) -> usize {
        self.lines.iter().map(|line| line.chars().count() + 1).sum()
    }
}

const HEAPTRACK: &[(&str, &str)] = &[("heaptrack", "heaptrack")];
const HEAPTRACK_WINDOW: &[(&str, &str)] = &[("heaptrack_gui", "heaptrack-gui")];
const VALGRIND: &[(&str, &str)] = &[("valgrind", "valgrind")];
const JEPROF: &[(&str, &str)] = &[("jeprof", "libjemalloc-dev")];
const MEMRAY: &[(&str, &str)] = &[("memray", "memray from PyPI")];
const ATTACH: &[(&str, &str)] = &[("heaptrack", "heaptrack"), ("gdb", "gdb")];
const FIREFOX: &[(&str, &str)] = &[("firefox-esr", "firefox-esr")];

/// The start of a program under jemalloc's profiler.
const JEMALLOC: &str = "MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:12 LD_PRELOAD=libjemalloc.so.2 target/release/shop";

pub(super) const TASKS: [Task; 10] = [
    Task {
        question: "What is my program's memory made of?",
        given: "the package's folder; the program is built.",
        service: Service::None,
        ways: &[
            way(
                "about-memory",
                &[],
                &["cargo memreport run -r"],
                &["shop::load_catalogue", "shop::Product"],
            ),
            window("heaptrack, its window", HEAPTRACK_WINDOW, &["heaptrack target/release/shop"]),
            way(
                "heaptrack, printed",
                HEAPTRACK,
                &["heaptrack target/release/shop", "heaptrack_print heaptrack.*"],
                &["load_catalogue"],
            ),
            way(
                "massif",
                VALGRIND,
                &["valgrind --tool=massif target/release/shop", "ms_print massif.*"],
                &["load_catalogue"],
            ),
            way(
                "jeprof",
                JEPROF,
                &[JEMALLOC, "jeprof --text target/release/shop jeprof.*"],
                &["load_catalogue"],
            ),
            way(
                "memray (shop.py)",
                MEMRAY,
                &["memray run shop.py", "memray stats *.bin"],
                &["load_catalogue"],
            ),
        ],
        without: "",
    },
    Task {
        question: "Which type grew between these two?",
        given: "two dumps of the running service, `before` and `after`; for heaptrack those of a short and a long run.",
        service: Service::Shop,
        ways: &[
            Way {
                tool: "about-memory",
                needs: &[],
                before: &[
                    "about-memory attach shop",
                    "sleep 1; about-memory snapshot shop --dump -o first.json && cp first.dmd.json before",
                    "sleep 2; about-memory snapshot shop --dump -o second.json && cp second.dmd.json after",
                ],
                lines: &["about-memory heap diff before after"],
                answer: Answer::Printed(&["Box<shop::AuditEntry>", "shop::audit"]),
            },
            Way {
                tool: "heaptrack, printed",
                needs: HEAPTRACK,
                before: &[
                    "heaptrack -o before target/release/shop",
                    "heaptrack -o after target/release/shop 2",
                ],
                lines: &["heaptrack_print -d before.zst after.zst"],
                answer: Answer::Printed(&["audit"]),
            },
            Way {
                tool: "jeprof",
                needs: JEPROF,
                before: &[
                    "MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:12,prof_prefix:b LD_PRELOAD=libjemalloc.so.2 target/release/shop && mv b.*.heap before",
                    "MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:12,prof_prefix:a LD_PRELOAD=libjemalloc.so.2 target/release/shop 2 && mv a.*.heap after",
                ],
                lines: &["jeprof --text --base=before target/release/shop after"],
                answer: Answer::Printed(&["audit"]),
            },
        ],
        without: "heaptrack and jeprof name the function, not the type. massif and memray compare no two files.",
    },
    Task {
        question: "Who holds this?",
        given: "the service runs, without any tool in it.",
        service: Service::Shop,
        ways: &[way(
            "about-memory",
            &[],
            &["about-memory tree shop"],
            &["static shop::AUDIT", "Box<shop::AuditEntry>"],
        )],
        without: "heaptrack, massif, memray and jeprof name who allocated a block, not who holds it.",
    },
    Task {
        question: "Is it a leak?",
        given: "the package's folder; the program is built.",
        service: Service::None,
        ways: &[
            way(
                "about-memory",
                &[],
                &["DMD=--mode=scan cargo memreport run -r"],
                &[
                    "Leaked: 136,000 bytes in 1,000 blocks",
                    "Box<shop::Session>",
                    "shop::open_session",
                ],
            ),
            way(
                "memcheck",
                VALGRIND,
                &["valgrind --leak-check=full target/release/shop"],
                &["definitely lost", "open_session"],
            ),
        ],
        without: "heaptrack and memray call leaked what was not freed at the end: statics too. Of a program that runs, `about-memory tree shop` has a line for what nothing refers to.",
    },
    Task {
        question: "What was the peak made of?",
        given: "the package's folder; the program is built.",
        service: Service::None,
        ways: &[
            way(
                "about-memory",
                &[],
                &["cargo memreport record -r"],
                &["What lived at the peak", "shop::parse_feed"],
            ),
            window("heaptrack, its window", HEAPTRACK_WINDOW, &["heaptrack target/release/shop"]),
            way(
                "heaptrack, printed",
                HEAPTRACK,
                &["heaptrack target/release/shop", "heaptrack_print heaptrack.*"],
                &["PEAK MEMORY CONSUMERS", "parse_feed"],
            ),
            way(
                "massif",
                VALGRIND,
                &["valgrind --tool=massif target/release/shop", "ms_print massif.*"],
                &["peak", "parse_feed"],
            ),
            way(
                "memray (shop.py)",
                MEMRAY,
                &["memray run shop.py", "memray stats *.bin"],
                &["Peak memory usage", "shop.py:17"],
            ),
        ],
        without: "jeprof shows the heap at moments that are chosen beforehand.",
    },
    Task {
        question: "Which code of my running service allocates?",
        given: "the service runs, without any tool in it.",
        service: Service::Shop,
        ways: &[
            way(
                "about-memory",
                &[],
                &["about-memory attach shop", "about-memory heap tree shop"],
                &["shop::audit"],
            ),
            window(
                "heaptrack until Ctrl-C",
                ATTACH,
                &["heaptrack -p $(pidof shop)", "heaptrack_print heaptrack.*"],
            ),
        ],
        without: "massif has to start the program. heaptrack's attachment, which it calls unstable, is not run here.",
    },
    Task {
        question: "Which code allocates only to free at once?",
        given: "the package's folder; the program is built.",
        service: Service::None,
        ways: &[
            way(
                "about-memory",
                &[],
                &["cargo memreport record -r"],
                &["freed within a millisecond", "shop::print_prices"],
            ),
            window("heaptrack, its window", HEAPTRACK_WINDOW, &["heaptrack target/release/shop"]),
            way(
                "heaptrack, printed",
                HEAPTRACK,
                &["heaptrack target/release/shop", "heaptrack_print heaptrack.*"],
                &["MOST TEMPORARY ALLOCATIONS", "print_prices"],
            ),
            window(
                "dhat, its page",
                VALGRIND,
                &[
                    "valgrind --tool=dhat target/release/shop",
                    "xdg-open /usr/libexec/valgrind/dh_view.html",
                ],
            ),
        ],
        without: "The file for dhat's page is opened there by the mouse, which is not counted.",
    },
    Task {
        question: "Show me this heap as a flame graph",
        given: "one dump, `before`, of each tool.",
        service: Service::None,
        ways: &[
            Way {
                tool: "about-memory",
                needs: &[],
                before: &["cargo memreport run -r -o saved && cp saved/*.dmd.json before"],
                lines: &["about-memory page before"],
                answer: Answer::Page("before.html", &["load_catalogue"]),
            },
            Way {
                tool: "heaptrack, its script",
                needs: &[
                    ("heaptrack", "heaptrack"),
                    ("flamegraph.pl", "FlameGraph, from its repository"),
                ],
                before: &["heaptrack -o before target/release/shop"],
                lines: &["heaptrack_print before.zst -F stacks", "flamegraph.pl stacks > a.svg"],
                answer: Answer::File("a.svg", &["load_catalogue"]),
            },
            Way {
                tool: "memray (shop.py)",
                needs: MEMRAY,
                before: &["memray run -o before shop.py"],
                lines: &["memray flamegraph before"],
                answer: Answer::File("memray-flamegraph-before.html", &["load_catalogue"]),
            },
        ],
        without: "",
    },
    Task {
        question: "Which of my tests leaves memory behind?",
        given: "the package's folder; the tests are built.",
        service: Service::None,
        ways: &[
            way(
                "about-memory",
                &[],
                &["cargo memreport test"],
                &[
                    "a_product_has_its_price: ok; nothing left behind",
                    "a_customer_comes_in: ok; 136 bytes in 1 block leaked",
                ],
            ),
            way(
                "memcheck",
                VALGRIND,
                &["valgrind --leak-check=full target/debug/deps/shop-????????????????"],
                &["open_session"],
            ),
        ],
        without: "memcheck shows the places of all tests together.",
    },
    Task {
        question: "What does this saved memory report say?",
        given: "a memory report, `r.json`.",
        service: Service::None,
        ways: &[
            Way {
                tool: "about-memory",
                needs: &[],
                before: &["cargo memreport run -r -o saved && mv saved/*0.json r.json"],
                lines: &["about-memory r.json"],
                answer: Answer::Printed(&["Explicit Allocations", "heap-unclassified"]),
            },
            window("Firefox", FIREFOX, &["firefox about:memory?file=$PWD/r.json"]),
        ],
        without: "",
    },
];

/// Returns a way whose lines print the answer.
const fn way(
    tool: &'static str,
    needs: &'static [(&'static str, &'static str)],
    lines: &'static [&'static str],
    words: &'static [&'static str],
) -> Way {
    Way { tool, needs, before: &[], lines, answer: Answer::Printed(words) }
}

/// Returns a way whose answer is in a window.
const fn window(
    tool: &'static str,
    needs: &'static [(&'static str, &'static str)],
    lines: &'static [&'static str],
) -> Way {
    Way { tool, needs, before: &[], lines, answer: Answer::Window }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_begins_with_our_way() {
        for task in &TASKS {
            assert_eq!(task.ways[0].tool, "about-memory", "{}", task.question);
            assert!(task.ways[0].needs.is_empty(), "{}", task.question);
            assert!(!matches!(task.ways[0].answer, Answer::Window), "{}", task.question);
        }
    }

    #[test]
    fn enter_counts_after_every_line() {
        assert_eq!(way("t", &[], &["ab", "c"], &[]).keystrokes(), 5);
    }
}
