//! The answer to a question: rows, as a table, JSON or Markdown.

use std::fmt;
use std::io::{self, Write};

use clap::ValueEnum;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value, json};

/// A form of answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns
    #[default]
    Table,
    /// A list of objects
    Json,
    /// A table of Markdown
    Markdown,
}

/// The rows of an answer. Every row has a value for each column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
    /// The seconds that the engine took, if it states them.
    pub seconds: Option<f64>,
}

/// A row as an object, whose fields keep their order.
struct Row(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Row;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Row(fields))
            }
        }
        from.deserialize_map(Fields)
    }
}

impl Answer {
    /// Parses a list of objects, or an object in each line.
    ///
    /// # Errors
    ///
    /// Returns the defect.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut answer = Answer::default();
        // DuckDB writes a list, and ClickHouse a line for each row.
        let text = text.trim();
        let rows: Result<Vec<Row>, serde_json::Error> = if text.starts_with('[') {
            serde_json::from_str(text)
        } else {
            serde_json::Deserializer::from_str(text).into_iter().collect()
        };
        for Row(fields) in rows.map_err(|error| error.to_string())? {
            if answer.columns.is_empty() {
                answer.columns = fields.iter().map(|(name, _)| name.clone()).collect();
            }
            if !fields.iter().map(|(name, _)| name).eq(&answer.columns) {
                return Err("rows have different columns".to_owned());
            }
            answer.rows.push(fields.into_iter().map(|(_, value)| value).collect());
        }
        Ok(answer)
    }

    /// Takes an object with `columns` and `rows`.
    ///
    /// # Errors
    ///
    /// Returns the defect.
    pub fn of_json(value: &Value) -> Result<Self, String> {
        let columns: Option<Vec<String>> = value["columns"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        let rows: Option<Option<Vec<Vec<Value>>>> = value["rows"]
            .as_array()
            .map(|rows| rows.iter().map(|row| row.as_array().cloned()).collect());
        match (columns, rows.flatten()) {
            (Some(columns), Some(rows)) => {
                Ok(Answer { columns, rows, seconds: value["seconds"].as_f64() })
            }
            _ => Err("neither columns nor rows".to_owned()),
        }
    }

    /// Returns the values of a column, by its name.
    pub fn column<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Value> {
        let at = self.columns.iter().position(|column| column == name);
        self.rows.iter().filter_map(move |row| row.get(at?))
    }

    /// Returns the rows as a list of objects.
    #[must_use]
    pub fn json(&self) -> Value {
        let object = |row: &Vec<Value>| {
            Value::Object(self.columns.iter().cloned().zip(row.iter().cloned()).collect())
        };
        json!(self.rows.iter().map(object).collect::<Vec<_>>())
    }

    /// Writes the answer.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Json => writeln!(out, "{}", ascii(&self.json().to_string())),
            Format::Table => self.write_table(out),
            Format::Markdown => self.write_markdown(out),
        }
    }

    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let cells: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(text).collect()).collect();
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, name)| {
                let cells = cells.iter().map(|row| row[at].chars().count());
                cells.chain([name.chars().count()]).max().unwrap_or(0)
            })
            .collect();
        let names =
            self.columns.iter().enumerate().map(|(at, name)| (name.as_str(), self.is_number(at)));
        write_line(out, names, &widths)?;
        for row in &cells {
            let row = row.iter().enumerate().map(|(at, cell)| (cell.as_str(), self.is_number(at)));
            write_line(out, row, &widths)?;
        }
        if cells.is_empty() {
            writeln!(out, "(none)")?;
        }
        Ok(())
    }

    fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| {} |", self.columns.join(" | "))?;
        let rules: Vec<&str> = (0..self.columns.len())
            .map(|at| if self.is_number(at) { "---:" } else { "---" })
            .collect();
        writeln!(out, "|{}|", rules.join("|"))?;
        for row in &self.rows {
            let cells: Vec<String> = row
                .iter()
                .map(|value| text(value).replace('|', "\\|").replace(['\n', '\r'], " "))
                .collect();
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
        Ok(())
    }

    /// Returns whether a column has numbers, which are aligned to the right.
    fn is_number(&self, at: usize) -> bool {
        let mut values = self.rows.iter().map(|row| &row[at]).filter(|value| !value.is_null());
        let first = values.next();
        first.is_some_and(Value::is_number) && values.all(Value::is_number)
    }
}

/// Writes a line of cells, each with whether it is aligned to the right.
fn write_line<'a>(
    out: &mut dyn Write,
    cells: impl Iterator<Item = (&'a str, bool)>,
    widths: &[usize],
) -> io::Result<()> {
    let mut line = String::new();
    for ((cell, is_number), width) in cells.zip(widths) {
        let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
        if !line.is_empty() {
            line.push_str("  ");
        }
        let (before, after) = if is_number { (pad.as_str(), "") } else { ("", pad.as_str()) };
        line.push_str(before);
        line.push_str(cell);
        line.push_str(after);
    }
    writeln!(out, "{}", line.trim_end())
}

/// Returns a value for people: thousands are apart.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.replace('\n', " "),
        Value::Number(number) => match number.as_i64() {
            Some(number) => memreport_analysis::analysis::commas(number.into()),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// Escapes all characters of JSON beyond ASCII, so that no terminal acts on them.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && c != '\u{7f}' {
            text.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                text += &format!("\\u{unit:04x}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(format: Format) -> String {
        let answer = Answer::of_json(&json!({
            "columns": ["host", "bytes"], "rows": [["a|b", 1_234_567], [null, -1], ["é", 0]],
        }));
        let mut out = Vec::new();
        answer.expect("it is an answer").write(format, &mut out).expect("it is memory");
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn answers_are_shown_in_every_form() {
        assert_eq!(
            shown(Format::Table),
            "host      bytes\na|b   1,234,567\n-            -1\né             0\n"
        );
        assert_eq!(
            shown(Format::Markdown),
            "| host | bytes |\n|---|---:|\n| a\\|b | 1,234,567 |\n| - | -1 |\n| é | 0 |\n"
        );
        let parsed = Answer::parse(&shown(Format::Json)).expect("it is JSON");
        assert_eq!(parsed.column("host").nth(2), Some(&json!("é")));
        assert!(shown(Format::Json).is_ascii());
    }

    #[test]
    fn lines_of_objects_are_rows() {
        for text in
            ["{\"b\":0,\"a\":1}\n{\"b\":0,\"a\":2}\n", "[{\"b\":0,\"a\":1},\n{\"b\":0,\"a\":2}]\n"]
        {
            let answer = Answer::parse(text).expect("they are rows");
            assert_eq!(answer.columns, ["b", "a"], "in the order of the engine");
            assert_eq!(answer.column("a").collect::<Vec<_>>(), [&json!(1), &json!(2)]);
        }
        assert_eq!(Answer::parse(""), Ok(Answer::default()));
        assert!(Answer::parse("7").is_err());
        assert!(Answer::parse("{\"a\":1}\n{\"b\":1}").is_err());
    }
}
