//! Fields and statics that a dump names: what was measured, what is skipped, and what holds blocks that nobody reports.

use serde::{Deserialize, Deserializer, de};

/// A field of a type, where it is declared, and why it is skipped if it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FieldPlace {
    /// The type that has it, with its path.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its name.
    pub field: String,
    /// The source file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// Why it is not measured, as its author says.
    pub reason: Option<String>,
}

/// A word of a module's data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StaticPlace {
    /// The module's file.
    pub module: String,
    /// The word's address in that file.
    #[serde(deserialize_with = "hex")]
    pub offset: u64,
    /// The static that has it, once looked up.
    pub name: Option<String>,
}

/// A word of a module's data, and where it leads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct StaticWord {
    /// Where the word is.
    #[serde(flatten)]
    pub place: StaticPlace,
    /// The address that it has: in a block, not always its start.
    #[serde(default, deserialize_with = "hex")]
    pub to: u64,
}

/// What holds a block: a word there points to it, or to an unreported block through which it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// A field that its type skips.
    Skipped(FieldPlace),
    /// A static.
    Static(StaticPlace),
}

/// The fields of either, as they stand in a dump: only a static is in a module.
#[derive(Deserialize)]
pub(crate) struct WireHolder {
    #[serde(flatten)]
    field: FieldPlace,
    #[serde(default)]
    module: String,
    #[serde(default)]
    offset: String,
    #[serde(default)]
    name: Option<String>,
}

impl From<WireHolder> for Holder {
    fn from(wire: WireHolder) -> Self {
        let WireHolder { field, module, offset, name } = wire;
        if module.is_empty() {
            return Self::Skipped(field);
        }
        let offset = u64::from_str_radix(&offset, 16).unwrap_or(0);
        Self::Static(StaticPlace { module, offset, name })
    }
}

fn hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    u64::from_str_radix(&text, 16).map_err(de::Error::custom)
}
