//! Reports in the shapes of a real capture: the trees, names and sizes of Firefox's own reporters.

use super::random::Random;
use serde_json::{Value, json};

/// Process names of a running Firefox.
const PROCESSES: &[&str] = &[
    "Main Process (pid 4711)",
    "webIsolated=https://one.example (pid 4811)",
    "webIsolated=https://two.example (pid 4821)",
    "web (pid 4790)",
    "WebExtensions (pid 4755)",
    "Privileged Content (pid 4761)",
    "Utility (pid 4799, sandboxingKind 0)",
    "Socket (pid 4731)",
];

/// Names of one level; `@` stands for an address, `#` for a number.
const NAMES: &[&[&str]] = &[
    &[
        "js-non-window",
        "window-objects",
        "gfx",
        "heap-overhead",
        "workers",
        "threads",
        "storage",
        "add-ons",
        "dmd",
    ],
    &[
        "zones",
        "runtime",
        "helper-thread",
        "gc-heap",
        "layout",
        "webrender",
        "top(https:\\\\one.example\\page, id=#)",
        "top(none)",
        "worker(https:\\\\one.example\\w.js, 0x@)",
        "stylo",
        "overhead",
        "Pool ##1 (tid=#)",
        "sqlite",
    ],
    &[
        "zone(0x@)",
        "realm(https:\\\\one.example\\a?b=c)",
        "js-zone(0x@)",
        "active",
        "cached",
        "style-sheets",
        "shaders",
        "string(<non-notable strings>)",
        "string(length=#, copies=#, \"ab\\ncd\" (truncated))",
        "class(Function)\\objects",
        "source(scripts=#, chrome:\\\\a.js)",
        "moz-nullprincipal:{01234567-89ab-cdef-0123-4567890abcd#}",
    ],
    &[
        "classes",
        "shapes",
        "scripts",
        "strings",
        "dom",
        "unused-gc-things",
        "malloc-heap",
        "gc-heap",
        "mapping",
    ],
    &[
        "objects", "elements", "slots", "dict", "latin1", "two-byte", "base", "other", "type-#",
        "non-heap",
    ],
];

/// Trees and flat measurements other than `explicit`: path, units, and the largest number of bits
/// of an amount.
const OTHERS: &[(&str, usize, usize)] = &[
    ("heap-allocated", 0, 29),
    ("heap-mapped", 0, 29),
    ("resident", 0, 30),
    ("resident-unique", 0, 29),
    ("vsize", 0, 42),
    ("page-faults-hard", 2, 9),
    ("page-faults-soft", 2, 24),
    ("ghost-windows", 1, 3),
    ("heap-overhead-ratio", 3, 14),
    ("decommitted/js-non-window/gc-heap/decommitted-arenas", 0, 20),
    ("decommitted/js-non-window/gc-heap/decommitted-pages", 0, 20),
    ("event-counts/window-objects/top(https:\\\\one.example\\page, id=#)/active/window/dom", 1, 10),
    ("observer-service/referent/strong", 1, 9),
    ("observer-service/referent/weak/alive", 1, 9),
    ("observer-service/referent/weak/dead", 1, 2),
    ("address-space/heap/private(segments=#)", 0, 32),
    ("address-space/file/mapped(segments=#)/[r--p]", 0, 24),
    ("ipc-channels/PContent#", 1, 4),
    ("js-helper-threads/idle", 1, 3),
    ("js-helper-threads/active/#", 1, 3),
    ("jar:file:\\\\\\usr\\lib\\firefox\\omni.ja!\\x/size", 0, 15),
    ("system/processes/web (pid #)/cpu", 3, 13),
];

/// Returns the reports of a whole capture.
pub(crate) fn capture(random: &mut Random) -> Vec<Value> {
    let mut reports = Vec::new();
    let first = random.index(2);
    for process in PROCESSES.iter().skip(first).take(1 + random.index(4)) {
        explicit(random, process, &mut reports);
        for _ in 0..random.index(2 * OTHERS.len()) {
            let (path, units, bits) = *random.pick(OTHERS);
            let path = filled(random, path);
            reports.push(report(process, &path, 2, units, random.up_to_bits(bits)));
        }
    }
    reports
}

fn explicit(random: &mut Random, process: &str, reports: &mut Vec<Value>) {
    for _ in 0..random.index(60) {
        let mut path = "explicit".to_owned();
        let depth = 1 + random.index(NAMES.len());
        for names in NAMES.iter().take(depth) {
            // The first names are the more likely ones, so that paths share prefixes.
            let few = 1 + random.index(names.len());
            let name = *random.pick(&names[..few]);
            path = format!("{path}/{}", filled(random, name));
        }
        let is_leaf_name = format!("{path}/{}", ["size", "count-#", "rest"][random.index(3)]);
        let path = filled(random, &is_leaf_name);
        let kind = usize::from(!random.once_in(4));
        reports.push(report(process, &path, kind, 0, random.up_to_bits(26)));
    }
}

/// Replaces the placeholders by numbers, few enough that paths coincide.
fn filled(random: &mut Random, pattern: &str) -> String {
    let mut text = String::new();
    for c in pattern.chars() {
        match c {
            '@' => text.push_str(&format!("7f{:02x}a000", random.index(6))),
            '#' => text.push_str(&random.index(4).to_string()),
            c => text.push(c),
        }
    }
    text
}

/// Returns one report in the form of a file's entry.
pub(crate) fn report(process: &str, path: &str, kind: usize, units: usize, amount: i64) -> Value {
    json!({
        "process": process,
        "path": path,
        "kind": kind,
        "units": units,
        "amount": amount,
        "description": format!("What lies at {path}."),
    })
}
