//! Tests the analysis of a scan with known references: retained sizes, leaked cycles, and reference
//! paths.

use std::path::Path;
use std::sync::OnceLock;

use memreport_analysis::analysis::ExplainOptions;
use memreport_analysis::axis::Axis;
use memreport_analysis::read::Dump;
use memreport_analysis::retention::{
    ExternalRoot, HandleCount, PathOptions, RetainedName, RetainedNode, Retention, StepPlace,
    Target, TreeOptions, WhyAlive, write_cycles, write_tree,
};
use memreport_analysis::symbols::Symboliser;

use crate::scans;

/// Returns the dump, which is made once.
fn dump() -> &'static Dump {
    static DUMP: OnceLock<Dump> = OnceLock::new();
    DUMP.get_or_init(|| scans::of_program(env!("CARGO_BIN_EXE_held"), "held.json.gz").dump)
}

/// Replaces the parts of a line that differ from run to run: addresses, and shares of the heap.
fn steady(line: &str) -> String {
    let word = |word: &str| match word {
        _ if word.ends_with('%') => "%".to_owned(),
        _ if word.starts_with("0x") => "0x".to_owned(),
        _ => word.to_owned(),
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// Returns the shown node of a static.
fn of_static<'t>(tree: &'t RetainedNode, name: &str) -> &'t RetainedNode {
    let is_it = |node: &&RetainedNode| node.name == RetainedName::Static(name.to_owned());
    tree.children.iter().find(is_it).unwrap_or_else(|| panic!("no {name} in {tree:#?}"))
}

/// Returns the type of a node's blocks.
fn block_type(node: &RetainedNode) -> &str {
    match &node.name {
        RetainedName::Blocks { block_type, .. } => block_type,
        _ => "",
    }
}

fn held(retention: &Retention<'_>, target: &Target) -> WhyAlive {
    retention.why_alive(target, &PathOptions::default()).expect("there are such blocks")
}

#[test]
fn a_static_retains_what_it_alone_holds() {
    let (dump, options) = (dump(), ExplainOptions::default());
    let retention = Retention::new(dump, &options).expect("it is a scan");
    let all: u64 = dump.blocks.iter().map(|block| block.usable()).sum();
    assert_eq!(retention.heap(), all);
    let mut whole = TreeOptions::default();
    (whole.top, whole.min_percent) = (1000, 0.0);
    let tree = retention.tree(&whole);
    // A complete tree of ten levels, and as many leaves.
    let [nodes] = &of_static(&tree, "held::TREE").children[..] else { panic!("{tree:#?}") };
    assert_eq!((block_type(nodes), nodes.blocks), ("Box<held::Tree>", 1023));
    assert_eq!((block_type(&nodes.children[0]), nodes.children[0].blocks), ("[u8]", 1023));
    let [links] = &of_static(&tree, "held::LIST").children[..] else { panic!("{tree:#?}") };
    assert_eq!(
        (block_type(links), links.blocks, links.bytes),
        ("Box<held::Link>", 10_000, links.own)
    );
    // Of a hundred entries, stale words may keep a few from belonging to the cache alone.
    let cache = of_static(&tree, "held::CACHE");
    assert!((90_000..110_000).contains(&cache.bytes), "{cache:#?}");
    assert!(cache.children[0].children[0].blocks >= 95, "{cache:#?}");
    // Two statics share ten pages, so that neither retains them. A stale word may lead to one.
    let shelf = of_static(&tree, "held::SHELF");
    assert!(shelf.bytes < 100, "{shelf:#?}");
    let (groups, _) = retention.groups(&Axis::Type, 100);
    let pages = groups.iter().find(|group| group.name == "Arc<held::Page>");
    assert!(pages.is_some_and(|pages| pages.retained >= 56_000), "{groups:#?}");
}

#[test]
fn the_guide_has_what_is_printed() {
    let dump = dump();
    let mut options = ExplainOptions::default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    options.root = root.map(|root| root.to_string_lossy().into_owned());
    let retention = Retention::new(dump, &options).expect("it is a scan");
    let mut circles = retention.cycles();
    let types = retention.pointing_types(circles.iter().flat_map(|circle| &circle.steps));
    let members = Symboliser::default().members(dump, &types);
    retention.name_fields(circles.iter_mut().flat_map(|circle| &mut circle.steps), &members);
    let mut out = Vec::new();
    write_tree(&retention, &retention.tree(&TreeOptions::default()), &mut out)
        .expect("there is room");
    write_cycles(&retention, &circles, 10, &mut out).expect("there is room");
    let printed = String::from_utf8(out).expect("it is text");
    let printed: Vec<String> = printed.lines().map(steady).collect();
    let guide = include_str!("../../docs/guide/src/heap.md");
    let shown =
        guide.split_once("$ about-memory heap dominators held.dmd.json\n").expect("it is there").1;
    let shown = shown.split_once("```").map_or(shown, |(shown, _)| shown);
    for line in shown.lines().filter(|line| !line.is_empty() && *line != "…") {
        assert!(printed.contains(&steady(line)), "{line}\nin {printed:#?}");
    }
}

#[test]
fn cycles_that_nothing_holds_are_leaks_and_others_are_not() {
    let (dump, options) = (dump(), ExplainOptions::default());
    let retention = Retention::new(dump, &options).expect("it is a scan");
    let circles = retention.cycles();
    let of_people = |counted, blocks, least| {
        let found =
            circles.iter().find(|circle| circle.handles == counted && circle.blocks == blocks);
        let circle = found.unwrap_or_else(|| panic!("{counted:?} in {circles:#?}"));
        assert_eq!(circle.external, ExternalRoot::Unknown);
        assert!(circle.retained >= least, "{circle:#?}");
        circle.count
    };
    assert_eq!(of_people(HandleCount::Leaked, 2, 100_000), 10);
    // The others have a handle on the stack of `main`, which is in the scan.
    let is_held = |handles| matches!(handles, HandleCount::Outside(_));
    assert!(!circles.iter().any(|circle| is_held(circle.handles)), "{circles:#?}");
}

#[test]
fn ways_lead_from_statics_through_fields() {
    let (dump, options) = (dump(), ExplainOptions::default());
    let retention = Retention::new(dump, &options).expect("it is a scan");
    let mut links = held(&retention, &Target::Type("Box<held::Link>".into()));
    assert_eq!((links.blocks, links.paths.len(), links.own), (10_000, 1, links.retained));
    let types = retention.pointing_types(links.paths[0].steps.iter());
    let members = Symboliser::default().members(dump, &types);
    retention.name_fields(links.paths[0].steps.iter_mut(), &members);
    let steps = &links.paths[0].steps;
    assert_eq!(steps[0].place, StepPlace::Static("held::LIST".into()));
    let field = steps[2].pointer.as_ref().and_then(|by| by.field.as_deref());
    assert_eq!((steps[2].alike, field), (9_998, Some("held::Link.next")));
    // Both paths to the page, and no static that is on both.
    let pages = retention.blocks_of(&Target::Type("Arc<held::Page>".into()));
    let list = *pages.first().expect("there are pages");
    let address = |block: usize| dump.blocks.at(block).addr.map_or(0, u64::from);
    let shared = pages.iter().find(|&&block| {
        let site = held(&retention, &Target::Block(address(block)));
        site.dominator.is_none() && site.retained > 7_000
    });
    let shared = held(&retention, &Target::Block(address(*shared.unwrap_or(&list))));
    let from: Vec<&StepPlace> = shared.paths.iter().map(|way| &way.steps[0].place).collect();
    assert!(from.contains(&&StepPlace::Static("held::SHELF".into())), "{from:?}");
    assert!(from.contains(&&StepPlace::Static("held::WINDOW".into())), "{from:?}");
    // Blocks that a reporter measures have the names of its fields.
    let names = held(&retention, &Target::Reporter("held::Index.names".into()));
    assert_eq!(names.blocks, 51);
    let fields: Vec<&str> = names.paths[0]
        .steps
        .iter()
        .filter_map(|step| step.pointer.as_ref()?.field.as_deref())
        .collect();
    assert!(fields.contains(&"held::Index.names"), "{fields:?}");
}
