//! Frames of threads at the moment of a scan.

use serde::{Deserialize, Deserializer, de};

use super::holder::hex;

/// A frame of a thread's stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StackFrame {
    /// The operating system's number of the thread.
    pub thread: u64,
    /// The path of the module that has the code.
    pub module: String,
    /// The return address in that file. Of code that called nothing, one byte behind the start of
    /// the current instruction, so that the byte before belongs to the current code in both cases.
    #[serde(deserialize_with = "hex")]
    pub offset: u64,
    /// The lowest address of the frame.
    #[serde(deserialize_with = "hex")]
    pub low: u64,
    /// The address behind the frame: its canonical frame address (DWARF 5, 6.4).
    #[serde(deserialize_with = "hex")]
    pub high: u64,
    /// The known registers.
    pub registers: Vec<FrameRegister>,
    /// True if the thread began with this frame.
    #[serde(rename = "isFirst")]
    pub is_first: bool,
    /// The functions at the address, the innermost inlined one first. None before symbolication.
    #[serde(skip)]
    pub functions: Vec<String>,
}

/// A register at the current instruction of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameRegister {
    /// Its number in DWARF.
    pub number: u16,
    /// Its value.
    pub value: u64,
    /// The address on the stack at which a called function saved it; `None` while the thread
    /// still has it in the register.
    pub place: Option<u64>,
}

impl StackFrame {
    /// Returns the register with this number of DWARF, if it is known.
    #[must_use]
    pub fn register(&self, number: u16) -> Option<&FrameRegister> {
        self.registers.iter().find(|register| register.number == number)
    }
}

impl<'de> Deserialize<'de> for FrameRegister {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (number, value, place): (u16, String, Option<String>) =
            Deserialize::deserialize(deserializer)?;
        let parse = |text: String| u64::from_str_radix(&text, 16).map_err(de::Error::custom);
        Ok(Self { number, value: parse(value)?, place: place.map(parse).transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_frames_are_hexadecimal() {
        let text = r#"{"thread":7,"module":"/bin/shop","offset":"1a","low":"7ff0","high":"8010",
            "registers":[[3,"ff","7fe8"],[7,"7ff0",null]]}"#;
        let frame: StackFrame = serde_json::from_str(text).unwrap();
        assert_eq!((frame.offset, frame.low, frame.high), (0x1a, 0x7ff0, 0x8010));
        let saved = FrameRegister { number: 3, value: 0xff, place: Some(0x7fe8) };
        assert_eq!(frame.register(3), Some(&saved));
        assert_eq!(frame.register(7).map(|register| register.place), Some(None));
        assert_eq!(frame.register(6), None);
        assert!(serde_json::from_str::<StackFrame>(r#"{"low":"zz"}"#).is_err());
    }
}
