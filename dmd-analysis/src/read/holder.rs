//! Fields and statics of a dump: measured fields, skipped fields, and the holders of unreported
//! blocks.

use serde::{Deserialize, Deserializer, de};

/// A field of a type: where it is declared and, for a skipped field, why it is skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FieldPlace {
    /// The type that declares it, with its path.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its name.
    pub field: String,
    /// The source file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The reason why it is not measured, from its attribute.
    pub reason: Option<String>,
}

/// A word of a module's data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StaticPlace {
    /// The path of the module.
    pub module: String,
    /// The address of the word in that file.
    #[serde(deserialize_with = "hex")]
    pub offset: u64,
    /// The name of the static that contains it, if it was looked up.
    pub name: Option<String>,
}

impl StaticPlace {
    /// The module of words that are in no module's data: stacks, registers, other memory of the
    /// process. Such a word has a name.
    pub const PROCESS: &str = "(process)";

    /// The name of words in memory that is neither a stack nor of a module.
    pub const OTHER_MEMORY: &str = "memory without a file";

    /// Returns whether the word is in a module's data.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.module != Self::PROCESS
    }
}

/// A word of a module's data, and the address in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct StaticWord {
    /// The place of the word.
    #[serde(flatten)]
    pub place: StaticPlace,
    /// The address in the word, which is in a block but not always its start.
    #[serde(default, deserialize_with = "hex")]
    pub to: u64,
    /// The words around it: three before, itself, and three behind. Empty if they are not in the
    /// dump.
    #[serde(default, deserialize_with = "hex_words")]
    pub around: Vec<u64>,
}

/// The holder of a block: a word in it points to the block, or to an unreported block that leads
/// there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// A field that its type skips.
    Skipped(FieldPlace),
    /// A static.
    Static(StaticPlace),
}

/// The fields of either kind in a dump. Only a static has a module.
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

pub(super) fn hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    u64::from_str_radix(&text, 16).map_err(de::Error::custom)
}

fn hex_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
    let texts = <Vec<String>>::deserialize(deserializer)?;
    let word = |text: String| u64::from_str_radix(&text, 16).map_err(de::Error::custom);
    texts.into_iter().map(word).collect()
}
