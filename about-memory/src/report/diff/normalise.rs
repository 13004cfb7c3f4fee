//! Removes from processes and paths what differs from run to run: pids, tids, addresses.

use regress::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// A rule: if `hint` occurs, each match of `pattern` (or only the first) becomes `replacement`.
struct Rule {
    hint: &'static str,
    pattern: LazyLock<Regex>,
    replacement: &'static str,
    is_global: bool,
}

macro_rules! rule {
    ($hint:literal, $pattern:literal, $replacement:literal, $is_global:literal) => {
        Rule {
            hint: $hint,
            // A constant, which the tests run.
            pattern: LazyLock::new(|| Regex::new($pattern).expect("a regular expression")),
            replacement: $replacement,
            is_global: $is_global,
        }
    };
}

static PID: Rule = rule!("pid", r"pid([ =]|: )\d+", "pid$1NNN", true);

/// The order matters: a rule can produce the text that a later one matches.
static PATH: [Rule; 6] = [
    rule!("(tid=", r"\(tid=(\d+)\)", "(tid=NNN)", false),
    rule!("(tid=NNN)", r"#\d+ \(tid=NNN\)", "#N (tid=NNN)", false),
    rule!("zone(0x", r"zone\(0x[0-9A-Fa-f]+\)\/", "zone(0xNNN)/", false),
    rule!("/worker(", r"\/worker\((.+), 0x[0-9A-Fa-f]+\)\/", "/worker($1, 0xNNN)/", false),
    rule!(
        "/window-objects/top(",
        r"^((?:explicit|event-counts)\/window-objects\/top\(.*, id=)\d+\)",
        "$1NNN)",
        false
    ),
    rule!(
        "moz-nullprincipal:{",
        r"moz-nullprincipal:\{........-....-....-....-............\}",
        "moz-nullprincipal:{NNNNNNNN-NNNN-NNNN-NNNN-NNNNNNNNNNNN}",
        true
    ),
];

static SEGMENTS: Rule = rule!("(segments=", r"\(segments=\d+\)", "(segments=NNNN)", true);
static OMNI_JAR: Rule =
    rule!("jar:file:\\\\\\", r"jar:file:\\\\\\(.+)\\omni.ja!", r"jar:file:\\\...\omni.ja!", false);
static SCRIPTS: Rule =
    rule!("source(scripts=", r"source\(scripts=(\d+), ", "source(scripts=NNN, ", false);

/// Returns the name of a process without its number.
pub(crate) fn process(name: &str) -> Cow<'_, str> {
    PID.apply(name.into())
}

/// Returns a path without the parts that differ from run to run.
pub(crate) fn path(path: &str) -> Cow<'_, str> {
    let mut path = PATH.iter().fold(PID.apply(path.into()), |path, rule| rule.apply(path));
    if path.starts_with("address-space") {
        path = SEGMENTS.apply(path);
    }
    SCRIPTS.apply(OMNI_JAR.apply(path))
}

impl Rule {
    fn apply<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        if !text.contains(self.hint) {
            return text;
        }
        let mut replaced = String::new();
        let mut copied = 0;
        for found in self.pattern.find_iter(&text).take(if self.is_global { usize::MAX } else { 1 })
        {
            replaced.push_str(&text[copied..found.start()]);
            let group = found.group(1).map_or("", |range| &text[range]);
            replaced.push_str(&self.replacement.replace("$1", group));
            copied = found.end();
        }
        if copied == 0 {
            return text;
        }
        replaced.push_str(&text[copied..]);
        replaced.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_taken_out() {
        for (from, to) in [
            ("a/b", "a/b"),
            (
                "a/pid 12, pid=3, pid: 4, pid:5, pid  6",
                "a/pid NNN, pid=NNN, pid: NNN, pid:5, pid  6",
            ),
            ("rapid 12", "rapid NNN"),
            ("x/Pool #7 (tid=123)/(tid=5)", "x/Pool #N (tid=NNN)/(tid=5)"),
            ("js/zone(0x7f4A)/zone(0x1)/a", "js/zone(0xNNN)/zone(0x1)/a"),
            ("js/zone(0x7f4A)", "js/zone(0x7f4A)"),
            (
                "w/worker(http:\\\\x, 0x12)/worker(y, 0x34)/a",
                "w/worker(http:\\\\x, 0x12)/worker(y, 0xNNN)/a",
            ),
            (
                "explicit/window-objects/top(u, id=5)/top(v, id=6)/a",
                "explicit/window-objects/top(u, id=5)/top(v, id=NNN)/a",
            ),
            (
                "event-counts/window-objects/top(u, id=5)",
                "event-counts/window-objects/top(u, id=NNN)",
            ),
            ("other/window-objects/top(u, id=5)/a", "other/window-objects/top(u, id=5)/a"),
            (
                "moz-nullprincipal:{01234567-89ab-cdef-0123-456789abcdef}?",
                "moz-nullprincipal:{NNNNNNNN-NNNN-NNNN-NNNN-NNNNNNNNNNNN}?",
            ),
            ("moz-nullprincipal:{0123}", "moz-nullprincipal:{0123}"),
            (
                "address-space/a(segments=3)/b(segments=4)",
                "address-space/a(segments=NNNN)/b(segments=NNNN)",
            ),
            ("address/a(segments=3)", "address/a(segments=3)"),
            ("jar:file:\\\\\\usr\\lib\\omni.ja!\\x", "jar:file:\\\\\\...\\omni.ja!\\x"),
            (
                "source(scripts=12, a)/source(scripts=1, b)",
                "source(scripts=NNN, a)/source(scripts=1, b)",
            ),
        ] {
            assert_eq!(path(from), to);
        }
    }

    #[test]
    fn a_process_keeps_all_but_its_number() {
        assert_eq!(process("web (pid 12) (tid=5)"), "web (pid NNN) (tid=5)");
    }
}
