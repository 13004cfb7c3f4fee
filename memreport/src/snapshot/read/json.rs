//! Pulls JSON out of a stream, one token at a time, with the rules of a browser's `JSON.parse`.
//!
//! Three things that Firefox accepts in a memory report rule out `serde_json`: bytes that are not
//! UTF-8 (replaced by U+FFFD), escapes of half a surrogate pair (the same), and numbers beyond
//! every double (infinity).

mod string;

use super::{Options, ReadError};
use serde_json::Value;
use std::io::Read;

const CHUNK: usize = 128 * 1024;

/// A reader of JSON text. It holds one chunk of it and at most one string.
pub(super) struct Json<'r> {
    source: &'r mut dyn Read,
    buffer: Vec<u8>,
    /// Invariant: `next <= filled <= buffer.len()`.
    next: usize,
    filled: usize,
    /// The number of bytes before the buffer's contents.
    before: u64,
    options: Options,
}

/// The first token of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Object,
    Array,
    String,
    Number,
    Word,
}

impl<'r> Json<'r> {
    pub(super) fn new(source: &'r mut dyn Read, options: Options) -> Self {
        Json { source, buffer: vec![0; CHUNK], next: 0, filled: 0, before: 0, options }
    }

    /// Returns the first bytes of the text, without consuming them.
    pub(super) fn first_bytes(&mut self) -> Result<&[u8], ReadError> {
        while self.filled < 3 && self.read_more()? {}
        Ok(&self.buffer[..self.filled])
    }

    pub(super) fn skip_bytes(&mut self, count: usize) {
        self.next += count;
    }

    /// Returns the position in bytes from the start of the text.
    pub(super) fn offset(&self) -> u64 {
        self.before + self.next as u64
    }

    pub(super) fn fault(&self, what: impl Into<String>) -> ReadError {
        ReadError::Json { offset: self.offset(), what: what.into() }
    }

    /// Appends input to the buffer, which must have room. Returns false at the end of the input.
    fn read_more(&mut self) -> Result<bool, ReadError> {
        let count = loop {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::from_io(error)),
                Ok(count) => break count,
            }
        };
        self.filled += count;
        if self.before + self.filled as u64 > self.options.bytes {
            return Err(ReadError::TooLarge { limit: self.options.bytes });
        }
        Ok(count > 0)
    }

    fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        if self.next == self.filled {
            self.before += self.filled as u64;
            (self.next, self.filled) = (0, 0);
            if !self.read_more()? {
                return Ok(None);
            }
        }
        Ok(Some(self.buffer[self.next]))
    }

    fn take(&mut self) -> Result<u8, ReadError> {
        let byte = self.peek()?.ok_or_else(|| self.fault("the text ends here, in the middle"))?;
        self.next += 1;
        Ok(byte)
    }

    /// Returns the next byte that is not blank, without consuming it.
    fn peek_token(&mut self) -> Result<Option<u8>, ReadError> {
        while let Some(byte) = self.peek()? {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Ok(Some(byte));
            }
            self.next += 1;
        }
        Ok(None)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), ReadError> {
        match self.peek_token()? {
            Some(byte) if byte == wanted => {
                self.next += 1;
                Ok(())
            }
            Some(byte) => {
                Err(self.fault(format!("`{}` expected, not {}", char::from(wanted), shown(byte))))
            }
            None => Err(self.fault("the text ends here, in the middle")),
        }
    }

    /// Returns the first token of the next value, without consuming it.
    pub(super) fn start(&mut self) -> Result<Start, ReadError> {
        match self.peek_token()? {
            Some(b'{') => Ok(Start::Object),
            Some(b'[') => Ok(Start::Array),
            Some(b'"') => Ok(Start::String),
            Some(b'-' | b'0'..=b'9') => Ok(Start::Number),
            Some(b't' | b'f' | b'n') => Ok(Start::Word),
            Some(byte) => Err(self.fault(format!("a value expected, not {}", shown(byte)))),
            None => Err(self.fault("the text ends here, in the middle")),
        }
    }

    /// Checks that only blanks follow. If just the end of a gzip stream is cut off, the text is
    /// still complete.
    pub(super) fn end(&mut self) -> Result<(), ReadError> {
        match self.peek_token() {
            Ok(None) | Err(ReadError::CutGzip(_)) => Ok(()),
            Err(error) => Err(error),
            Ok(Some(byte)) => {
                Err(self.fault(format!("the text should end here, but {} follows", shown(byte))))
            }
        }
    }

    /// Reads a number as the nearest double.
    pub(super) fn number(&mut self) -> Result<f64, ReadError> {
        if let Some(number) = self.small_number() {
            return Ok(number);
        }
        let mut digits = Vec::new();
        while let Some(byte @ (b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) = self.peek()? {
            if digits.len() == self.options.string {
                return Err(ReadError::LongString {
                    limit: self.options.string,
                    offset: self.offset(),
                });
            }
            digits.push(byte);
            self.next += 1;
        }
        if !is_number(&digits) {
            return Err(self.fault(format!(
                "no number: `{}`",
                String::from_utf8_lossy(&digits[..digits.len().min(40)])
            )));
        }
        // The grammar of JSON numbers is a part of what `f64` parses, and both round to the
        // nearest.
        std::str::from_utf8(&digits)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.fault("no number"))
    }

    /// Reads a whole number of up to 15 digits that lies in the buffer, as almost every number here
    /// does.
    fn small_number(&mut self) -> Option<f64> {
        let unread = &self.buffer[self.next..self.filled];
        let count = unread.iter().take(16).take_while(|byte| byte.is_ascii_digit()).count();
        let ends = matches!(unread.get(count), Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r'));
        if !ends || count == 0 || count > 15 || (unread[0] == b'0' && count > 1) {
            return None;
        }
        // Below 2^53, every whole number is a double.
        let number =
            unread[..count].iter().fold(0.0, |sum, digit| sum * 10.0 + f64::from(digit - b'0'));
        self.next += count;
        Some(number)
    }

    /// Reads `true`, `false` or `null` (`None`).
    pub(super) fn word(&mut self) -> Result<Option<bool>, ReadError> {
        let (rest, value): (&[u8], _) = match self.take()? {
            b't' => (b"rue", Some(true)),
            b'f' => (b"alse", Some(false)),
            _ => (b"ull", None),
        };
        for &wanted in rest {
            if self.take()? != wanted {
                return Err(self.fault("an unknown word; only true, false and null are known"));
            }
        }
        Ok(value)
    }

    /// Enters an object or array whose start has been read.
    pub(super) fn enter(&mut self) {
        self.next += 1;
    }

    /// Advances to the next member of the object or array. Returns false at its end `close`, and
    /// consumes it.
    pub(super) fn next_member(&mut self, first: &mut bool, close: u8) -> Result<bool, ReadError> {
        let was_first = std::mem::replace(first, false);
        match self.peek_token()? {
            Some(byte) if byte == close => {
                self.next += 1;
                return Ok(false);
            }
            Some(_) if was_first => return Ok(true),
            _ => self.expect(b',')?,
        }
        match self.peek_token()? {
            Some(byte) if byte == close => Err(self.fault("a comma before the end")),
            _ => Ok(true),
        }
    }

    /// Reads the key of the next member into `text`, and the colon.
    pub(super) fn key(&mut self, text: &mut String) -> Result<(), ReadError> {
        self.string(text)?;
        self.expect(b':')
    }

    /// Reads a value and discards it. Each nesting level costs one byte, up to the limit.
    pub(super) fn skip(&mut self, scratch: &mut String) -> Result<(), ReadError> {
        let mut open: Vec<u8> = Vec::new();
        let mut first = true;
        loop {
            let entered = match self.start()? {
                Start::Object => Some(b'}'),
                Start::Array => Some(b']'),
                Start::String => self.string(scratch).map(|()| None)?,
                Start::Number => self.number().map(|_| None)?,
                Start::Word => self.word().map(|_| None)?,
            };
            if let Some(close) = entered {
                self.enter();
                open.push(close);
                first = true;
                self.check_depth(open.len())?;
            }
            loop {
                let Some(&close) = open.last() else { return Ok(()) };
                if self.next_member(&mut first, close)? {
                    if close == b'}' {
                        self.key(scratch)?;
                    }
                    break;
                }
                open.pop();
                first = false;
            }
        }
    }

    fn check_depth(&self, depth: usize) -> Result<(), ReadError> {
        if depth > self.options.nesting {
            return Err(ReadError::TooDeep { limit: self.options.nesting, offset: self.offset() });
        }
        Ok(())
    }

    /// Reads a value of at most `limit` bytes and returns it.
    ///
    /// In memory, a value takes up to about 50 times its text.
    pub(super) fn small_value(&mut self, limit: u64) -> Result<Value, ReadError> {
        self.value(1, self.offset().saturating_add(limit)).map_err(|error| match error {
            ReadError::LargeValue { offset, .. } => ReadError::LargeValue { limit, offset },
            other => other,
        })
    }

    /// Reads a value that ends before `end`. It recurses, at most 100 levels deep.
    fn value(&mut self, depth: usize, end: u64) -> Result<Value, ReadError> {
        self.check_depth(depth)?;
        if self.offset() > end {
            return Err(ReadError::LargeValue { limit: end, offset: self.offset() });
        }
        if depth > 100 {
            return Err(ReadError::TooDeep { limit: 100, offset: self.offset() });
        }
        let (mut text, mut first) = (String::new(), true);
        Ok(match self.start()? {
            Start::Object => {
                self.enter();
                let mut members = serde_json::Map::new();
                while self.next_member(&mut first, b'}')? {
                    self.key(&mut text)?;
                    let value = self.value(depth + 1, end)?;
                    members.insert(std::mem::take(&mut text), value);
                }
                Value::Object(members)
            }
            Start::Array => {
                self.enter();
                let mut items = Vec::new();
                while self.next_member(&mut first, b']')? {
                    items.push(self.value(depth + 1, end)?);
                }
                Value::Array(items)
            }
            Start::String => {
                self.string(&mut text)?;
                Value::String(text)
            }
            Start::Number => Value::from(self.number()?),
            Start::Word => self.word()?.map_or(Value::Null, Value::Bool),
        })
    }
}

/// Returns whether these bytes are a JSON number: `-0.5e+10`, but not `01`, `1.` or `+1`.
fn is_number(text: &[u8]) -> bool {
    fn digits(text: &[u8]) -> (usize, &[u8]) {
        let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count, &text[count..])
    }
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, mut rest) = digits(text);
    if whole == 0 || (whole > 1 && text[0] == b'0') {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let (count, after) = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = after;
    }
    if let Some((b'e' | b'E', exponent)) = rest.split_first() {
        let unsigned =
            exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let (count, after) = digits(unsigned);
        return count > 0 && after.is_empty();
    }
    rest.is_empty()
}

/// Formats a byte for a message.
fn shown(byte: u8) -> String {
    match byte {
        b'\n' => "a line break".into(),
        b'!'..=b'~' => format!("`{}`", char::from(byte)),
        _ => format!("byte {byte:#04x}"),
    }
}
