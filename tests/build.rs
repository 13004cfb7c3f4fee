//! Generates a hundred odd structs and some enums for the test `fuzzed`, the same in every build.

use std::fmt::Write as _;
use std::path::PathBuf;

/// The number of types. One of seven is an enum, which leaves a hundred structs.
const TYPES: usize = 117;

/// Types that hold no others.
const LEAVES: [&str; 23] = [
    "u8",
    "(u16, bool)",
    "u64",
    "f64",
    "std::time::Duration",
    "std::num::NonZeroU32",
    "String",
    "Box<str>",
    "Rc<str>",
    "Arc<str>",
    "Cow<'static, str>",
    "PathBuf",
    "CString",
    "BinaryHeap<u64>",
    "BTreeSet<String>",
    "HashSet<String>",
    "bytes::Bytes",
    "compact_str::CompactString",
    "smol_str::SmolStr",
    "serde_json::Value",
    "url::Url",
    "uuid::Uuid",
    "roaring::RoaringBitmap",
];

/// Types that hold another in place of the `?`.
const AROUND: [&str; 30] = [
    "Option<?>",
    "Box<?>",
    "Vec<?>",
    "VecDeque<?>",
    "LinkedList<?>",
    "Rc<?>",
    "Arc<?>",
    "Pin<Box<?>>",
    "RefCell<?>",
    "Mutex<?>",
    "RwLock<?>",
    "OnceLock<?>",
    "[?; 3]",
    "Box<[?]>",
    "Rc<[?]>",
    "Arc<[?]>",
    "BTreeMap<u16, ?>",
    "HashMap<String, ?>",
    "Result<?, String>",
    "(u8, ?)",
    "vec::IntoIter<?>",
    "SmallVec<[?; 2]>",
    "ThinVec<?>",
    "ArrayVec<?, 4>",
    "IndexMap<String, ?>",
    "slab::Slab<?>",
    "parking_lot::Mutex<?>",
    "triomphe::Arc<?>",
    "generational_arena::Arena<?>",
    "rpds::List<?>",
];

/// A generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit
    }
}

/// Returns a type that nests up to `depth` times; a few are types generated earlier.
fn nested(random: &mut Random, depth: usize, before: usize) -> String {
    if depth > 0 && random.below(4) > 0 {
        let inner = nested(random, depth - 1, before);
        AROUND[random.below(AROUND.len())].replace('?', &inner)
    } else if before > 0 && random.below(4) == 0 {
        named(random.below(before), "u32")
    } else {
        LEAVES[random.below(LEAVES.len())].to_owned()
    }
}

/// Returns the name of a type. Every fifth type has a parameter.
fn named(number: usize, argument: &str) -> String {
    let argument = if number % 5 == 4 { format!("<{argument}>") } else { String::new() };
    format!("Fuzzed{number}{argument}")
}

/// Writes a struct, or an enum with the fields in two variants.
fn write_type(number: usize, random: &mut Random, out: &mut String) -> std::fmt::Result {
    let is_generic = number % 5 == 4;
    let mut types: Vec<String> =
        (0..1 + random.below(5)).map(|_| nested(random, 3, number)).collect();
    if is_generic {
        types.push(AROUND[random.below(AROUND.len())].replace('?', "T"));
    }
    let head = named(number, "T");
    let bound = if is_generic { "<T: Arbitrary>" } else { "" };
    let make = "Arbitrary::make(random)";
    writeln!(out, "#[derive(MallocSizeOf)]")?;
    let value = if number % 7 == 3 {
        let fields = types.join(", ");
        writeln!(out, "enum {head} {{ Empty, Full({fields}) }}")?;
        let made = vec![make; types.len()].join(", ");
        format!("if random.below(8) == 0 {{ Self::Empty }} else {{ Self::Full({made}) }}")
    } else if number % 7 == 5 {
        writeln!(out, "struct {head}({});", types.join(", "))?;
        format!("Self({})", vec![make; types.len()].join(", "))
    } else {
        let fields = |each: &dyn Fn(usize, &String) -> String| -> String {
            types.iter().enumerate().map(|(index, ty)| each(index, ty)).collect()
        };
        writeln!(out, "struct {head} {{ {} }}", fields(&|index, ty| format!("f{index}: {ty}, ")))?;
        format!("Self {{ {} }}", fields(&|index, _| format!("f{index}: {make}, ")))
    };
    if number % 6 == 1 && !is_generic {
        writeln!(out, "impl Drop for {head} {{ fn drop(&mut self) {{}} }}")?;
    }
    writeln!(
        out,
        "impl{bound} Arbitrary for {head} {{ fn make(random: &mut Random) -> Self {{ {value} }} }}"
    )
}

/// Returns the number of nestable types that occur in the text.
fn nested_types(text: &str) -> usize {
    let head = |ty: &&str| text.contains(ty.split('?').next().unwrap_or(ty));
    LEAVES.iter().chain(&AROUND).copied().filter(head).count()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut text = String::new();
    for number in 0..TYPES {
        write_type(number, &mut random, &mut text)?;
    }
    writeln!(text, "const MAKERS: [fn(&mut Random) -> Box<dyn Value>; {TYPES}] = [")?;
    for number in 0..TYPES {
        writeln!(text, "    make::<{}>,", named(number, "String"))?;
    }
    writeln!(text, "];")?;
    let structs = text.lines().filter(|line| line.starts_with("struct ")).count();
    writeln!(text, "const STRUCTS: usize = {structs};")?;
    writeln!(text, "const NESTED: usize = {};", nested_types(&text))?;
    let folder = std::env::var_os("OUT_DIR").ok_or("cargo names the folder")?;
    std::fs::write(PathBuf::from(folder).join("fuzzed.rs"), text)?;
    Ok(())
}
