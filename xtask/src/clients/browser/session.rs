//! A terminal session as a picture in SVG: commands that are run now, and what they print. It plays
//! where pictures move; elsewhere all of it is shown.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;

/// The commands, and the number of lines that are shown of each.
const COMMANDS: [(&[&str], usize); 3] = [
    (&["after.json.gz", "--filter", "explicit/fulltext"], 14),
    (&["diff", "before.json.gz", "after.json.gz", "--filter", "explicit"], 9),
    (&["heap", "tree", "after.dmd.json.gz", "--min", "10"], 16),
];

const LINE: usize = 18;
const WIDTH: usize = 900;

/// Seconds before a command is typed, and before its output is there.
const PAUSE: f64 = 2.5;
const WORK: f64 = 0.8;

/// Runs the commands on the files of a folder, and writes the picture.
pub(crate) fn write(about_memory: &Path, folder: &Path, into: &Path) -> Result<(), Failure> {
    let mut lines = String::new();
    let (mut count, mut time) = (0, 0.3);
    let mut say = |text: &str, class: &str, time: f64| {
        count += 1;
        let (y, text) = (count * LINE + 14, escaped(text));
        // Without motion, nothing hides the line.
        let hidden = format!(r#"<set attributeName="visibility" to="hidden" end="{time:.1}s"/>"#);
        writeln!(
            lines,
            r#"<text class="{class}" x="16" y="{y}" xml:space="preserve">{text}{hidden}</text>"#
        )
    };
    for (args, most) in COMMANDS {
        let output = Command::new(about_memory).args(args).current_dir(folder).output()?;
        if !output.status.success() {
            return Err(format!("about-memory {} failed", args.join(" ")).into());
        }
        let text = String::from_utf8(output.stdout)?;
        say(&format!("$ about-memory {} | head -{most}", args.join(" ")), "command", time)?;
        for line in text.lines().take(most) {
            say(line, "output", time + WORK)?;
        }
        say("", "output", time)?;
        time += PAUSE;
    }
    let height = (count + 1) * LINE;
    let picture = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">
<title>A terminal session: reports, their difference, and the heap by stack</title>
<style>text {{ font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #e9ebf1; }} .command {{ fill: #8ab4f8; font-weight: 600; }}</style>
<rect width="{WIDTH}" height="{height}" rx="10" fill="#14161b"/>
{lines}</svg>
"##
    );
    std::fs::write(into, picture)?;
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
