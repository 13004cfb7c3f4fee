//! Gates: the few files that may read the environment, create files with contents of the heap, open
//! files that a dump names, write to a terminal, or differ between operating systems.
//!
//! The first ignore every variable in programs with more privileges than their starter. The second
//! create private files with random names. The third read regular files up to a limit. The fourth
//! escape foreign text. The fifth implement one trait.

use std::collections::BTreeSet;

use super::files::Workspace;
use super::outcome::Outcome;
use super::tokens::{Kind, Token, tokens};

/// Functions behind gates, and the files that may call them.
struct Gate {
    /// The folders of crates that the rule is about.
    crates: &'static [&'static str],
    /// The files that may call the functions, sorted.
    files: &'static [&'static str],
    /// A folder whose files may call the functions, and the file of its name; empty if there is
    /// none.
    folder: &'static str,
    /// Modules or types, each with its functions: `env::var`.
    functions: &'static [(&'static str, &'static [&'static str])],
    /// Words that are not allowed at all.
    words: &'static [&'static str],
}

/// The environment, in the libraries that run inside programs or read files.
const ENVIRONMENT: Gate = Gate {
    crates: &["memreport", "memreport-derive", "dmd", "dmd-analysis"],
    files: &["dmd/src/mem/sys/environment.rs", "memreport/src/process/environment.rs"],
    folder: "",
    functions: &[("env", &["var", "var_os", "vars", "vars_os", "temp_dir", "{", "*"])],
    words: &["getenv", "secure_getenv", "environ"],
};

/// New files. Most have contents of the heap, and other users may wait for them.
const FILES: Gate = Gate {
    crates: &["memreport", "dmd", "dmd-analysis", "about-memory", "memreport-fleet"],
    files: &[
        // Manifests and sources of the user's packages.
        "about-memory/src/cargo/init.rs",
        // The user's sources, and a copy of them.
        "about-memory/src/command/annotate.rs",
        "about-memory/src/command/annotate/source/copy.rs",
        // The budget, which contains no data of a program.
        "about-memory/src/command/check.rs",
        // Devices of `--output`.
        "about-memory/src/command/flags/output.rs",
        // Moves recordings out of a private folder.
        "about-memory/src/command/launch/record.rs",
        // The memory of a process.
        "about-memory/src/inject/load.rs",
        // The order in which the kernel ends processes.
        "about-memory/src/other_process/running/child.rs",
        // Opens existing files with flags.
        "dmd-analysis/src/symbols/module/file.rs",
        // The spool, in a private folder.
        "memreport-fleet/src/agent/spool.rs",
        // A private file of a dataset gets its name.
        "memreport-fleet/src/store/local.rs",
        // The socket gets its name.
        "memreport/src/serve.rs",
        "memreport/src/snapshot/files.rs",
    ],
    folder: "",
    functions: &[
        ("File", &["create", "create_new", "options"]),
        ("fs", &["write", "copy", "rename", "hard_link", "set_permissions"]),
        ("NamedTempFile", &["new", "new_in"]),
    ],
    words: &["OpenOptions", "creat", "mkstemp", "mkostemp"],
};

/// Files that a dump names. They may be pipes, devices or of any size.
const FOREIGN_FILES: Gate = Gate {
    crates: &["dmd-analysis"],
    files: &[
        // The dump or recording itself, which the user names.
        "dmd-analysis/src/read.rs",
        "dmd-analysis/src/read/scan/block_words.rs",
        "dmd-analysis/src/read/scan/copied_words.rs",
        "dmd-analysis/src/recording/read.rs",
        "dmd-analysis/src/recording/source.rs",
        "dmd-analysis/src/symbols/module/file.rs",
    ],
    folder: "",
    functions: &[
        ("File", &["open", "options"]),
        ("fs", &["read", "read_to_string", "read_dir", "File", "{", "*"]),
    ],
    words: &["OpenOptions", "Mmap"],
};

/// Standard output and error, the terminal view, and bytes that pass to other programs as they are.
const TERMINAL_TEXT: Gate = Gate {
    crates: &["about-memory", "memreport-fleet"],
    files: &[
        // The output of cargo and of test harnesses.
        "about-memory/src/cargo/build.rs",
        "about-memory/src/cargo/test/harness.rs",
        "about-memory/src/cargo/workspace.rs",
        // Formats that other programs read, and the output of cargo.
        "about-memory/src/command/annotate.rs",
        "about-memory/src/command/annotate/source/check.rs",
        "about-memory/src/command/annotate/source/workspace.rs",
        "about-memory/src/command/convert/export.rs",
        "about-memory/src/command/convert/metrics.rs",
        "about-memory/src/command/heap/census.rs",
        // The file that takes the output of a test, and a look at standard output.
        "about-memory/src/command/launch/run/surroundings.rs",
        "about-memory/src/command/launch/run/watch.rs",
        "about-memory/src/command/process/call.rs",
        // Draws escaped lines.
        "about-memory/src/command/process/top.rs",
        "about-memory/src/command/process/top/state.rs",
        // Scripts and manual pages of our own words.
        "about-memory/src/command/shell/completions.rs",
        "about-memory/src/command/shell/man.rs",
        // Discards the output of the program that opens a browser.
        "about-memory/src/command/view/page/open.rs",
        "about-memory/src/context.rs",
        "about-memory/src/context/pager.rs",
        "about-memory/src/context/start.rs",
        // A look at the console.
        "about-memory/src/context/windows_console.rs",
        "about-memory/src/render/terminal/row.rs",
        "about-memory/src/render/terminal/screen.rs",
        "about-memory/src/render/terminal_text.rs",
        "memreport-fleet/src/main.rs",
        // Pipes of an engine.
        "memreport-fleet/src/query/engine.rs",
    ],
    folder: "",
    functions: &[("io", &["stdout", "stderr"])],
    words: &["println", "eprintln", "stdout", "machine_bytes", "ratatui"],
};

/// Conditions on the operating system, in the tracker. Elsewhere one would be forgotten when a
/// system is added, which has to implement the trait and nothing else.
const SYSTEMS: Gate = Gate {
    crates: &["dmd"],
    files: &[],
    folder: "dmd/src/mem/sys",
    functions: &[],
    words: &["target_env", "target_family", "target_os", "target_vendor"],
};

/// Checks that no library reads the environment outside its gate. Tests do not count.
pub(crate) fn check_environment(workspace: &Workspace) -> Outcome {
    ENVIRONMENT.check(workspace)
}

/// Checks that files are created by the gates only. Tests do not count.
pub(crate) fn check_files(workspace: &Workspace) -> Outcome {
    FILES.check(workspace)
}

/// Checks that files which a dump names are opened by their gate only. Tests do not count.
pub(crate) fn check_foreign_files(workspace: &Workspace) -> Outcome {
    FOREIGN_FILES.check(workspace)
}

/// Checks that text reaches the terminal through its gate only. Tests do not count.
pub(crate) fn check_terminal_text(workspace: &Workspace) -> Outcome {
    TERMINAL_TEXT.check(workspace)
}

/// Checks that the tracker has its conditions on the system in one folder. Tests do not count.
pub(crate) fn check_systems(workspace: &Workspace) -> Outcome {
    SYSTEMS.check(workspace)
}

impl Gate {
    fn check(&self, workspace: &Workspace) -> Outcome {
        let (mut offenders, mut used) = (Vec::new(), BTreeSet::new());
        let mut uses_folder = self.folder.is_empty();
        for name in self.crates {
            let folder = format!("{name}/src");
            for source in workspace.below(&folder).filter(|source| !source.is_test()) {
                for token in self.calls(&source.text) {
                    if self.files.contains(&source.path.as_str()) {
                        used.insert(source.path.as_str());
                    } else if self.has_in_folder(&source.path) {
                        uses_folder = true;
                    } else {
                        offenders.push(format!("{}:{}: {}", source.path, token.line, token.text));
                    }
                }
            }
        }
        let unused = self.files.iter().filter(|file| !used.contains(*file));
        offenders.extend(unused.map(|file| format!("{file}: is listed and needs no gate")));
        if !uses_folder {
            offenders.push(format!("{}: is listed and needs no gate", self.folder));
        }
        if !self.files.is_sorted() {
            offenders.push("the list is not sorted".to_owned());
        }
        let gates = self.files.len() + usize::from(!self.folder.is_empty());
        Outcome::none_of(offenders).with_summary(format!("{gates} gates"))
    }

    /// Returns whether the file is in the folder of this gate, or has its name.
    fn has_in_folder(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.folder).filter(|_| !self.folder.is_empty());
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }

    /// Returns the functions of this gate in a source.
    fn calls<'text>(&self, text: &'text str) -> Vec<Token<'text>> {
        let code = without_tests(text);
        let is_function = |words: &[Token<'_>]| {
            let [module, colons, function] = words else { return false };
            let of_module = self.functions.iter().find(|(name, _)| *name == module.text);
            colons.text == "::"
                && of_module.is_some_and(|(_, functions)| functions.contains(&function.text))
        };
        let functions = code.windows(3).filter(|words| is_function(words)).map(|words| words[2]);
        let words = code.iter().filter(|token| self.words.contains(&token.text)).copied();
        functions.chain(words).collect()
    }
}

/// Returns the tokens of a source up to the tests at its end, without comments.
fn without_tests(text: &str) -> Vec<Token<'_>> {
    let mut code = tokens(text);
    code.retain(|token| token.kind != Kind::Comment);
    let is_tests = |window: &[Token<'_>]| {
        let words: Vec<&str> = window.iter().map(|token| token.text).collect();
        words.first() == Some(&"cfg") && words.contains(&"test") && words.ends_with(&["mod"])
    };
    // `cfg(test)] mod`, or `cfg(all(test, unix))] mod`.
    let starts = [6, 11].iter().filter_map(|length| code.windows(*length).position(is_tests));
    code.truncate(starts.min().unwrap_or(code.len()));
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a file beside the listed ones.
    fn offenders(gate: &Gate, path: &str, text: &str) -> String {
        let (module, functions) = gate.functions[0];
        let allowed = format!("{module}::{}(x)", functions[0]);
        let listed = gate.files.iter().map(|file| (*file, allowed.as_str()));
        let files: Vec<_> = listed.chain([(path, text)]).collect();
        gate.check(&Workspace::of(&files)).offenders.join("; ")
    }

    #[test]
    fn reading_the_environment_outside_the_gates_is_seen() {
        for (path, text, expected) in [
            ("dmd/src/a.rs", "fn a() {\n std::env::var(\"A\") }", "dmd/src/a.rs:2: var"),
            ("dmd/src/a.rs", "unsafe { libc::getenv(name) }", "dmd/src/a.rs:1: getenv"),
            ("memreport/src/a.rs", "env::temp_dir()", "memreport/src/a.rs:1: temp_dir"),
            ("memreport/src/a.rs", "use std::env::{args, var};", "memreport/src/a.rs:1: {"),
            ("dmd/src/a.rs", "env::current_exe(); // env::var", ""),
            ("dmd/src/a.rs", "#[cfg(test)]\nmod tests { env::var(x) }", ""),
            ("dmd/src/a.rs", "#[cfg(all(test, unix))]\nmod tests { env::var(x) }", ""),
            ("about-memory/src/a.rs", "env::var(x)", ""),
            ("dmd/src/a/tests.rs", "env::var(x)", ""),
        ] {
            assert_eq!(offenders(&ENVIRONMENT, path, text), expected, "{path}: {text}");
        }
        let [used, unused] = ENVIRONMENT.files else { panic!("two gates") };
        let outcome = check_environment(&Workspace::of(&[(used, "env::var(x)")]));
        assert_eq!(outcome.offenders, [format!("{unused}: is listed and needs no gate")]);
    }

    #[test]
    fn creating_files_outside_the_gates_is_seen() {
        for (path, text, expected) in [
            ("dmd/src/a.rs", "File::create(path)?", "dmd/src/a.rs:1: create"),
            ("dmd/src/a.rs", "PrivateFile::create(path)?; File::open(path)", ""),
            ("about-memory/src/a.rs", "fs::copy(a, b)", "about-memory/src/a.rs:1: copy"),
            ("memreport/src/a.rs", "OpenOptions::new()", "memreport/src/a.rs:1: OpenOptions"),
            ("xtask/src/a.rs", "fs::write(path, text)", ""),
        ] {
            assert_eq!(offenders(&FILES, path, text), expected, "{path}: {text}");
        }
    }

    #[test]
    fn opening_files_of_a_dump_past_the_gate_is_seen() {
        for (path, text, expected) in [
            ("dmd-analysis/src/a.rs", "std::fs::read(path)", "dmd-analysis/src/a.rs:1: read"),
            ("dmd-analysis/src/a.rs", "File::open(path)", "dmd-analysis/src/a.rs:1: open"),
            ("dmd-analysis/src/a.rs", "file::read(path)", ""),
            ("dmd-analysis/src/a/tests.rs", "fs::read(path)", ""),
        ] {
            assert_eq!(offenders(&FOREIGN_FILES, path, text), expected, "{path}: {text}");
        }
    }

    #[test]
    fn writing_to_the_terminal_past_the_gate_is_seen() {
        for (path, text, expected) in [
            ("about-memory/src/a.rs", "println!(\"{name}\")", "about-memory/src/a.rs:1: println"),
            ("about-memory/src/a.rs", "io::stderr().lock()", "about-memory/src/a.rs:1: stderr"),
            (
                "about-memory/src/a.rs",
                "out.machine_bytes()",
                "about-memory/src/a.rs:1: machine_bytes",
            ),
            ("about-memory/src/a.rs", "writeln!(context.out, \"{name}\")", ""),
            ("dmd/src/a.rs", "io::stderr()", ""),
        ] {
            assert_eq!(offenders(&TERMINAL_TEXT, path, text), expected, "{path}: {text}");
        }
    }

    #[test]
    fn a_condition_on_the_system_outside_its_folder_is_seen() {
        let condition = "#[cfg(target_os = \"linux\")]\nfn a() {}";
        let found = |path: &str, text: &str| {
            let files = [("dmd/src/mem/sys.rs", condition), (path, text)];
            check_systems(&Workspace::of(&files)).offenders.join("; ")
        };
        for (path, text, expected) in [
            ("dmd/src/hook.rs", condition, "dmd/src/hook.rs:1: target_os"),
            ("dmd/src/mem/system.rs", condition, "dmd/src/mem/system.rs:1: target_os"),
            ("dmd/src/a.rs", "\nif cfg!(target_env = \"musl\") {}", "dmd/src/a.rs:2: target_env"),
            ("dmd/src/mem/sys/linux/threads.rs", condition, ""),
            ("dmd/src/a.rs", "// target_os\nlet target = \"target_os\";", ""),
            ("dmd/src/a.rs", "#[cfg(target_arch = \"x86_64\")]\nfn a() {}", ""),
            ("dmd/src/a.rs", "#[cfg(test)]\nmod tests { cfg!(target_os) }", ""),
            ("memreport/src/a.rs", condition, ""),
        ] {
            assert_eq!(found(path, text), expected, "{path}: {text}");
        }
        let outcome = check_systems(&Workspace::of(&[("dmd/src/a.rs", "fn a() {}")]));
        assert_eq!(outcome.offenders, ["dmd/src/mem/sys: is listed and needs no gate"]);
    }
}
