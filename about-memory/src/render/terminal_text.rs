//! The gate to terminals: escapes characters of foreign text that a terminal acts on.
//!
//! Names in dumps, in reports and of other users' programs may contain escape sequences, and
//! characters that reorder the text around them. All answers and messages pass this writer.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use crate::render::colour;

/// A writer that escapes characters that a terminal acts on, except `\n` and `\t`.
///
/// An incomplete character at the end of all text is not written.
pub struct TerminalText<'w> {
    inner: &'w mut dyn Write,
    form: Form,
    is_terminal: bool,
    /// The beginning of a character whose other bytes have not come.
    incomplete: Vec<u8>,
}

/// The form in which text passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Text for people.
    Text,
    /// The same with the sequences of [`colour`].
    Coloured,
    /// JSON: escapes stay JSON, with the same meaning.
    Json,
    /// Bytes for another program.
    Bytes,
}

impl<'w> TerminalText<'w> {
    /// Makes a writer of text in front of another one.
    pub fn new(inner: &'w mut dyn Write) -> Self {
        Self::with_form(inner, Form::Text, false)
    }

    fn with_form(inner: &'w mut dyn Write, form: Form, is_terminal: bool) -> Self {
        TerminalText { inner, form, is_terminal, incomplete: Vec::new() }
    }

    /// Writes formatted text, for `write!` without an import of [`Write`].
    ///
    /// # Errors
    /// The inner writer fails.
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        Write::write_fmt(self, text)
    }

    /// Flushes the inner writer.
    ///
    /// # Errors
    /// The inner writer fails.
    pub fn flush(&mut self) -> io::Result<()> {
        Write::flush(self)
    }

    /// Sets whether a terminal shows the text. Only then, bytes for other programs are escaped.
    pub(crate) fn set_terminal(&mut self, is_terminal: bool) {
        self.is_terminal = is_terminal;
    }

    /// Returns a writer of text in colours.
    pub(crate) fn coloured(&mut self, is_coloured: bool) -> TerminalText<'_> {
        let form = if is_coloured { Form::Coloured } else { Form::Text };
        TerminalText::with_form(&mut *self.inner, form, self.is_terminal)
    }

    /// Returns a writer of JSON.
    pub(crate) fn json(&mut self) -> TerminalText<'_> {
        TerminalText::with_form(&mut *self.inner, Form::Json, self.is_terminal)
    }

    /// Returns a writer of bytes that another program reads, such as CSV. A terminal gets them
    /// escaped.
    pub(crate) fn machine_bytes(&mut self) -> TerminalText<'_> {
        let form = if self.is_terminal { Form::Text } else { Form::Bytes };
        TerminalText::with_form(&mut *self.inner, form, self.is_terminal)
    }

    /// Escapes a text, and keeps an incomplete character at its end.
    fn write_text(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.write_valid(chunk.valid())?;
            let invalid = chunk.invalid();
            let is_incomplete = chunks.peek().is_none()
                && str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if is_incomplete {
                self.incomplete = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.inner.write_all("\u{fffd}".as_bytes())?;
            }
        }
        Ok(())
    }

    fn write_valid(&mut self, mut text: &str) -> io::Result<()> {
        let is_kept = |c| matches!(c, '\n' | '\t') || !is_unsafe(c);
        while let Some(at) = text.find(|c| !is_kept(c)) {
            let (plain, rest) = text.split_at(at);
            self.inner.write_all(plain.as_bytes())?;
            let sequence = colour::sequence(rest).filter(|_| self.form == Form::Coloured);
            if let Some(sequence) = sequence {
                self.inner.write_all(sequence.as_bytes())?;
                text = &rest[sequence.len()..];
                continue;
            }
            let mut characters = rest.chars();
            if let Some(c) = characters.next() {
                match self.form {
                    Form::Json => write!(self.inner, "\\u{:04x}", u32::from(c))?,
                    _ => write!(self.inner, "{}", Picture(c))?,
                }
            }
            text = characters.as_str();
        }
        self.inner.write_all(text.as_bytes())
    }
}

impl Write for TerminalText<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.form == Form::Bytes {
            return self.inner.write(bytes);
        }
        if self.incomplete.is_empty() {
            self.write_text(bytes)?;
        } else {
            let mut whole = std::mem::take(&mut self.incomplete);
            whole.extend_from_slice(bytes);
            self.write_text(&whole)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl fmt::Debug for TerminalText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalText").field("form", &self.form).finish_non_exhaustive()
    }
}

/// Returns text for one line, without any character that a terminal acts on.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unsafe(c) { safe.push_str(&Picture(c).to_string()) } else { safe.push(c) }
    }
    safe.into()
}

/// Returns whether a terminal acts on a character, or reorders the text around it.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}')
}

/// An unsafe character as a visible one: `␛`, or `\u{202e}`.
struct Picture(char);

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u32::from(self.0) {
            0x7F => f.write_str("␡"),
            code @ ..0x20 => write!(f, "{}", char::from_u32(0x2400 + code).unwrap_or('␀')),
            code => write!(f, "\\u{{{code:x}}}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\x1b]0;t\x07\r\x7f\u{9b}2J \u{202e}b\u{2066}\u{200f}\u{61c}─é\n\tc";

    fn written(text: &[u8], form: Form, piece: usize) -> String {
        let mut out = Vec::new();
        let mut gate = TerminalText::new(&mut out);
        gate.form = form;
        for piece in text.chunks(piece) {
            gate.write_all(piece).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn it_can_be_debugged_without_its_output() {
        let mut out = Vec::new();
        let shown = format!("{:?}", TerminalText::new(&mut out));
        assert!(shown.starts_with("TerminalText { form: "), "{shown}");
    }

    #[test]
    fn what_a_terminal_acts_on_is_escaped_however_the_text_is_cut() {
        let shown = "a␛]0;t␇␍␡\\u{9b}2J \\u{202e}b\\u{2066}\\u{200f}\\u{61c}─é\n\tc";
        let json =
            "a\\u001b]0;t\\u0007\\u000d\\u007f\\u009b2J \\u202eb\\u2066\\u200f\\u061c─é\n\tc";
        for piece in 1..HOSTILE.len() {
            assert_eq!(written(HOSTILE.as_bytes(), Form::Text, piece), shown, "{piece}");
            assert_eq!(written(HOSTILE.as_bytes(), Form::Json, piece), json, "{piece}");
            assert_eq!(written(HOSTILE.as_bytes(), Form::Bytes, piece), HOSTILE, "{piece}");
        }
        assert_eq!(line("a\n\u{202e}\tb"), "a␊\\u{202e}␉b");
        assert_eq!(line("─é"), "─é");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(written(b"a\x9b2J\xe2\x80b", Form::Text, 1), "a\u{fffd}2J\u{fffd}b");
        // The beginning of U+202E.
        assert_eq!(written(b"a\xe2\x80", Form::Text, 9), "a");
    }

    #[test]
    fn only_our_own_colours_pass_and_only_where_they_are_on() {
        use crate::render::colour::{Style, paint};
        let text = format!("{}\x1b[2Jx", paint("5\x1b[31m", Style::Invalid, true));
        let write = |is_coloured| {
            let mut out = Vec::new();
            write!(TerminalText::new(&mut out).coloured(is_coloured), "{text}").unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(write(true), "\x1b[1;31m5␛[31m\x1b[0m␛[2Jx");
        assert_eq!(write(false), "␛[1;31m5␛[31m␛[0m␛[2Jx");
    }

    #[test]
    fn a_terminal_gets_bytes_for_programs_escaped() {
        for (is_terminal, expected) in [(false, "\x1b[2J"), (true, "␛[2J")] {
            let mut out = Vec::new();
            let mut gate = TerminalText::new(&mut out);
            gate.set_terminal(is_terminal);
            gate.machine_bytes().write_all(b"\x1b[2J").unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
