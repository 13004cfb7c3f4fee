//! A program of which it is known who holds what, scanned: what each of its statics retains, which of its cycles are leaks, and
//! by which ways its blocks are held.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use memreport_analysis::analysis::ExplainOptions;
use memreport_analysis::read::{Dump, read_file};
use memreport_analysis::retention::{
    Counted, Held, Holds, Outside, Owner, Place, Retained, RetainedName, Target, TreeOptions,
    WayOptions, write_circles, write_tree,
};
use memreport_analysis::symbols::Symboliser;

/// The dump, made once.
fn dump() -> &'static Dump {
    static DUMP: OnceLock<Dump> = OnceLock::new();
    DUMP.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("held");
        std::fs::create_dir_all(&folder).expect("the target folder is ours");
        // Under some test runners each test is a process of its own.
        let report = folder.join(format!("{}.json.gz", std::process::id()));
        let mut command = Command::new(env!("CARGO_BIN_EXE_held"));
        let output = command.arg(&report).env("DMD", "--mode=scan").output();
        let output = output.expect("cargo has built it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let file = dmd::dump::beside(&report);
        let mut dump = read_file(&file).expect("the dump is there, and good");
        let _ = std::fs::remove_file(report);
        let _ = std::fs::remove_file(file);
        Symboliser::default().symbolicate(&mut dump);
        dump
    })
}

/// Words without what differs from run to run: addresses, and shares of a heap that has the environment in it.
fn steady(line: &str) -> String {
    let word = |word: &str| match word {
        _ if word.ends_with('%') => "%".to_owned(),
        _ if word.starts_with("0x") => "0x".to_owned(),
        _ => word.to_owned(),
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// The shown node of a static.
fn of_static<'t>(tree: &'t Retained, name: &str) -> &'t Retained {
    let is_it = |node: &&Retained| node.name == RetainedName::Static(name.to_owned());
    tree.kids.iter().find(is_it).unwrap_or_else(|| panic!("no {name} in {tree:#?}"))
}

/// The type of a node's blocks.
fn block_type(node: &Retained) -> &str {
    match &node.name {
        RetainedName::Blocks { block_type, .. } => block_type,
        _ => "",
    }
}

fn held(holds: &Holds<'_>, target: &Target) -> Held {
    holds.held(target, &WayOptions::default()).expect("there are such blocks")
}

#[test]
fn a_static_retains_what_it_alone_holds() {
    let (dump, options) = (dump(), ExplainOptions::default());
    let holds = Holds::new(dump, &options).expect("it is a scan");
    let all: u64 = dump.blocks.iter().map(memreport_analysis::read::Block::usable).sum();
    assert_eq!(holds.heap(), all);
    let mut whole = TreeOptions::default();
    (whole.top, whole.min_percent) = (1000, 0.0);
    let tree = holds.tree(&whole);
    // A complete tree of ten levels, and as many leaves.
    let [nodes] = &of_static(&tree, "held::TREE").kids[..] else { panic!("{tree:#?}") };
    assert_eq!((block_type(nodes), nodes.blocks), ("Box<held::Tree>", 1023));
    assert_eq!((block_type(&nodes.kids[0]), nodes.kids[0].blocks), ("[u8]", 1023));
    let [links] = &of_static(&tree, "held::LIST").kids[..] else { panic!("{tree:#?}") };
    assert_eq!(
        (block_type(links), links.blocks, links.bytes),
        ("Box<held::Link>", 10_000, links.own)
    );
    // Of a hundred entries, words from before may keep a few from being the cache's alone.
    let cache = of_static(&tree, "held::CACHE");
    assert!((90_000..110_000).contains(&cache.bytes), "{cache:#?}");
    assert!(cache.kids[0].kids[0].blocks >= 95, "{cache:#?}");
    // Two statics share a page, so that it is neither's.
    let shelf = of_static(&tree, "held::SHELF");
    assert!(shelf.bytes < 100, "{shelf:#?}");
    let (groups, _) = holds.groups(Owner::Type, 100);
    let page = groups.iter().find(|group| group.name == "Arc<held::Page>");
    assert!(page.is_some_and(|page| page.retained >= 70_000), "{groups:#?}");
}

#[test]
fn the_readme_has_what_is_printed() {
    let dump = dump();
    let mut options = ExplainOptions::default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    options.root = root.map(|root| root.to_string_lossy().into_owned());
    let holds = Holds::new(dump, &options).expect("it is a scan");
    let mut circles = holds.circles();
    let types = holds.pointing_types(circles.iter().flat_map(|circle| &circle.steps));
    let members = Symboliser::default().members(dump, &types);
    holds.name_fields(circles.iter_mut().flat_map(|circle| &mut circle.steps), &members);
    let mut out = Vec::new();
    write_tree(&holds, &holds.tree(&TreeOptions::default()), &mut out).expect("there is room");
    write_circles(&holds, &circles, 10, &mut out).expect("there is room");
    let printed = String::from_utf8(out).expect("it is text");
    let printed: Vec<String> = printed.lines().map(steady).collect();
    let readme = include_str!("../../README.md");
    let shown =
        readme.split_once("$ about-memory retained held.dmd.json\n").expect("it is there").1;
    let shown = shown.split_once("```").map_or(shown, |(shown, _)| shown);
    for line in shown.lines().filter(|line| !line.is_empty() && *line != "…") {
        assert!(printed.contains(&steady(line)), "{line}\nin {printed:#?}");
    }
}

#[test]
fn cycles_that_nothing_holds_are_leaks_and_others_are_not() {
    let (dump, options) = (dump(), ExplainOptions::default());
    let holds = Holds::new(dump, &options).expect("it is a scan");
    let circles = holds.circles();
    let of_people = |counted, blocks, least| {
        let found =
            circles.iter().find(|circle| circle.counted == counted && circle.blocks == blocks);
        let circle = found.unwrap_or_else(|| panic!("{counted:?} in {circles:#?}"));
        assert_eq!(circle.outside, Outside::Unknown);
        assert!(circle.retained >= least, "{circle:#?}");
        circle.cycles
    };
    assert_eq!(of_people(Counted::Leaked, 2, 100_000), 10);
    // A handle on the stack of `main` counts for each of these.
    assert_eq!(of_people(Counted::Outside(1), 2, 12_000), 1);
    assert_eq!(of_people(Counted::Outside(1), 1, 800), 1);
}

#[test]
fn ways_lead_from_statics_through_fields() {
    let (dump, options) = (dump(), ExplainOptions::default());
    let holds = Holds::new(dump, &options).expect("it is a scan");
    let mut links = held(&holds, &Target::Type("Box<held::Link>".into()));
    assert_eq!((links.blocks.len(), links.ways.len(), links.own), (10_000, 1, links.retained));
    let types = holds.pointing_types(links.ways[0].steps.iter());
    let members = Symboliser::default().members(dump, &types);
    holds.name_fields(links.ways[0].steps.iter_mut(), &members);
    let steps = &links.ways[0].steps;
    assert_eq!(steps[0].place, Place::Static("held::LIST".into()));
    let field = steps[2].by.as_ref().and_then(|by| by.field.as_deref());
    assert_eq!((steps[2].alike, field), (9_998, Some("held::Link.next")));
    // Both ways to the page, and no static that is on both.
    let page = held(&holds, &Target::Type("Arc<held::Page>".into()));
    let [list, ..] = page.blocks[..] else { panic!("{page:#?}") };
    let address = |block: usize| dump.blocks[block].addr.map_or(0, u64::from);
    let shared = page.blocks.iter().find(|&&block| {
        let site = held(&holds, &Target::Block(address(block)));
        site.keeper.is_none() && site.retained > 70_000
    });
    let shared = held(&holds, &Target::Block(address(*shared.unwrap_or(&list))));
    let from: Vec<&Place> = shared.ways.iter().map(|way| &way.steps[0].place).collect();
    assert!(from.contains(&&Place::Static("held::SHELF".into())), "{from:?}");
    assert!(from.contains(&&Place::Static("held::WINDOW".into())), "{from:?}");
    // What a reporter counts is named by its fields.
    let names = held(&holds, &Target::Reporter("held::Index.names".into()));
    assert_eq!(names.blocks.len(), 51);
    let fields: Vec<&str> =
        names.ways[0].steps.iter().filter_map(|step| step.by.as_ref()?.field.as_deref()).collect();
    assert!(fields.contains(&"held::Index.names"), "{fields:?}");
}
