//! Writes reports as the JSON file from which a page builds its trees. Keeps every field as it was
//! read.

use memreport::snapshot::read::{Entry, Field, Sink};
use serde_json::json;
use std::error::Error;
use std::io::Write;

/// A writer of a memory report, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    text: Vec<u8>,
    reporters: Vec<String>,
}

impl Sink for Reports {
    fn restart(&mut self) {
        self.text.clear();
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        if !self.text.is_empty() {
            self.text.extend(b",\n");
        }
        write!(self.text, "{{\"path\":{}", json!(entry.path))?;
        let fields = [
            ("process", &entry.process),
            ("kind", &entry.kind),
            ("units", &entry.units),
            ("amount", &entry.amount),
            ("description", &entry.description),
            ("_presence", &entry.presence),
        ];
        for (name, field) in fields {
            if let Some(value) = value(field) {
                write!(self.text, ",\"{name}\":{value}")?;
            }
        }
        if let Some(segments) = entry.segments {
            write!(self.text, ",\"segments\":{}", json!(segments))?;
        }
        self.text.push(b'}');
        Ok(())
    }
}

impl Reports {
    /// Sets the paths of the program's own reporters, which the page keeps in sight.
    pub(crate) fn name_reporters(&mut self, paths: Vec<String>) {
        self.reporters = paths;
    }

    /// Returns the whole file.
    pub(crate) fn finish(self, writer: Option<&str>, knows_usable_size: bool) -> Vec<u8> {
        let head = json!({
            "version": 1, "hasMozMallocUsableSize": knows_usable_size, "writer": writer,
            "reporters": self.reporters,
        });
        let mut file = head.to_string().into_bytes();
        file.pop();
        file.extend(b",\"reports\":[\n");
        file.extend(self.text);
        file.extend(b"\n]}\n");
        file
    }
}

/// Returns a value that JavaScript treats as the one in the original file.
fn value(field: &Field<'_>) -> Option<String> {
    Some(match field {
        Field::Missing => return None,
        // JSON has no NaN. A missing field is NaN for JavaScript too.
        Field::Number(number) if number.is_nan() => return None,
        Field::Null => "null".into(),
        Field::Bool(value) => value.to_string(),
        Field::Number(number) => self::number(*number),
        Field::Text(text) => json!(text).to_string(),
        // JavaScript turns an array of one string into that string; it is always true.
        Field::Composite(text) => json!([text]).to_string(),
    })
}

fn number(number: f64) -> String {
    match number {
        // A number beyond the range of a double is read as infinite.
        _ if number.is_infinite() => if number > 0.0 { "1e999" } else { "-1e999" }.into(),
        // Without a point, as in files. Zero keeps its sign.
        _ if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
        _ => json!(number).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_short_and_read_back_as_they_are() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1500.0, "1500"),
            (-7.0, "-7"),
            (2.5, "2.5"),
            (999_999_999_999_999.0, "999999999999999"),
            (1e15, "1000000000000000.0"),
            (f64::INFINITY, "1e999"),
            (f64::NEG_INFINITY, "-1e999"),
        ] {
            let text = number(value);
            assert_eq!(text, expected);
            assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()), "{text}");
        }
    }
}
