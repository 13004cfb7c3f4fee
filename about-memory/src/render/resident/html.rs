//! Writes the explanation of resident memory as a fragment of HTML: headings, a sentence, a table
//! for each sum.

use super::text::{head, is_shown, signed, size};
use crate::report::resident::{Explanation, Line};
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};

/// Writes the fragment. All text is escaped; there is no script and no style.
///
/// # Errors
/// The fragment cannot be written.
pub fn write(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section class=\"resident\">")?;
    writeln!(out, "<h2>{}</h2>", Escaped(&head(explanation)))?;
    let Explanation { verdict, .. } = explanation;
    let word = verdict.cause.word();
    writeln!(
        out,
        "<p class=\"verdict {word}\"><strong>{}</strong></p>",
        Escaped(&verdict.sentence)
    )?;
    for sum in &explanation.sums {
        let is_compared = sum.whole.1.is_some();
        writeln!(out, "<table>\n<caption>{} {}</caption>", Escaped(&sum.whole.0.name), sum.by)?;
        let growth = if is_compared { "<th scope=\"col\">Change</th>" } else { "" };
        writeln!(
            out,
            "<thead><tr><th scope=\"col\">Part</th><th scope=\"col\">Bytes</th>{growth}<th scope=\"col\">Source</th></tr></thead>"
        )?;
        writeln!(out, "<tbody>")?;
        for part in sum.parts.iter().filter(|(line, growth)| is_shown(line, *growth)) {
            row(&part.0.name, part, out)?;
        }
        writeln!(out, "</tbody>\n<tfoot>")?;
        row("all", &sum.whole, out)?;
        writeln!(out, "</tfoot>\n</table>")?;
    }
    if !explanation.notes.is_empty() {
        writeln!(out, "<ul class=\"notes\">")?;
        for note in &explanation.notes {
            writeln!(out, "<li>{}</li>", Escaped(note))?;
        }
        writeln!(out, "</ul>")?;
    }
    writeln!(out, "</section>")
}

fn row(name: &str, (line, growth): &(Line, Option<i64>), out: &mut dyn Write) -> io::Result<()> {
    let class = |growth: i64| match growth.signum() {
        1 => " class=\"grown\"",
        -1 => " class=\"shrunk\"",
        _ => "",
    };
    let cell = |growth| format!("<td{}>{}</td>", class(growth), signed(growth));
    let growth = growth.map(cell).unwrap_or_default();
    writeln!(
        out,
        "<tr><th scope=\"row\">{}</th><td>{}</td>{growth}<td>{}</td></tr>",
        Escaped(name),
        size(line.bytes),
        Escaped(line.source)
    )
}

/// Text that is escaped for elements and quoted attributes.
struct Escaped<'t>(&'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                _ => write!(out, "{letter}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::explanation;
    use super::*;

    #[test]
    fn it_is_closed_escaped_and_without_script() {
        let mut out = Vec::new();
        write(&explanation(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for element in ["section", "table", "thead", "tbody", "tfoot", "tr", "th", "td", "p", "h2"]
        {
            let opened = text.matches(&format!("<{element}>")).count()
                + text.matches(&format!("<{element} ")).count();
            assert_eq!(opened, text.matches(&format!("</{element}>")).count(), "{element}");
            assert!(opened > 0, "{element}");
        }
        assert!(text.contains("explicit/&lt;b&gt;&amp;"), "{text}");
        assert!(!text.contains("<b>") && !text.contains("<script"));
        assert!(text.contains("<p class=\"verdict reported\">"));
        assert!(text.contains("<td class=\"grown\">+"), "changes have a colour: {text}");
    }
}
