//! Trees of programs whose types are known: a few types, as debug information has them.

use super::{scan, text};
use crate::ownership::{OwnerTree, OwnerTreeOptions};
use crate::read::Dump;
use crate::symbols::Types;
use crate::symbols::types::{Field, StaticVariable, Tag, Type, TypeId, TypeKind, Variant};

/// The types of a program that are added one by one.
#[derive(Default)]
struct Program(Types);

impl Program {
    fn add(&mut self, name: &str, size: u64, kind: TypeKind) -> TypeId {
        let id = self.next();
        self.0.by_name.insert(name.into(), id);
        self.0.list.push(Type { name: name.into(), size, kind, arguments: Vec::new() });
        id
    }

    /// Returns the number of the type that is added next.
    fn next(&self) -> TypeId {
        TypeId(u32::try_from(self.0.list.len()).expect("a few types"))
    }

    fn number(&mut self, name: &str, size: u64) -> TypeId {
        self.add(name, size, TypeKind::Plain)
    }

    fn structure(&mut self, name: &str, size: u64, fields: &[(&str, u64, TypeId)]) -> TypeId {
        self.add(name, size, TypeKind::Struct(fields.iter().copied().map(field).collect()))
    }

    fn boxed(&mut self, to: TypeId) -> TypeId {
        let name = format!("alloc::boxed::Box<{}, alloc::alloc::Global>", self.0.name(to));
        self.add(&name, 8, TypeKind::Pointer(Some(to)))
    }

    /// Adds a vector: pointer, capacity, length.
    fn vector(&mut self, of: TypeId) -> TypeId {
        let element = self.0.name(of).to_owned();
        let number = self.number("usize", 8);
        let pointer = self.add("*const u8", 8, TypeKind::Pointer(None));
        let buffer = format!("alloc::raw_vec::RawVec<{element}, alloc::alloc::Global>");
        let buffer = self.structure(&buffer, 16, &[("ptr", 0, pointer), ("cap", 8, number)]);
        let name = format!("alloc::vec::Vec<{element}, alloc::alloc::Global>");
        let vector = self.structure(&name, 24, &[("buf", 0, buffer), ("len", 16, number)]);
        for id in [buffer, vector] {
            self.0.list[id.0 as usize].arguments = vec![("T".into(), of)];
        }
        vector
    }

    /// Gives the static at byte 8 this type.
    fn has_static(mut self, of: TypeId) -> Types {
        self.0.statics.push(StaticVariable { address: 8, of });
        self.0.module = "/p".into();
        self.0
    }
}

fn field((name, offset, of): (&str, u64, TypeId)) -> Field {
    Field { name: name.into(), offset, of }
}

fn tree(types: &Types, blocks: &str, words: &str) -> OwnerTree {
    let dump: Dump = scan(blocks, &format!(r#""statics":[{words}]"#));
    OwnerTree::new(&dump, types, &OwnerTreeOptions::default()).expect("it is a scan")
}

fn shown(tree: &OwnerTree) -> String {
    let mut out = String::new();
    text(&tree.rows, 0, &mut out);
    out
}

#[test]
fn a_box_owns_its_value_and_what_the_value_owns() {
    let mut program = Program::default();
    let number = program.number("u64", 8);
    let node = TypeId(program.next().0 + 1);
    let next = program.add(
        "alloc::boxed::Box<p::Node, alloc::alloc::Global>",
        8,
        TypeKind::Pointer(Some(node)),
    );
    program.structure("p::Node", 16, &[("next", 0, next), ("key", 8, number)]);
    // The key of the first is no pointer, but looks like one.
    let blocks = r#"{"req":16,"addr":"1000","contents":["2000","3000"]},
        {"req":16,"addr":"2000","contents":["0","0"]},{"req":16,"addr":"3000"}"#;
    let words = r#"{"module":"/p","offset":"8","name":"p::LIST","to":"1000"}"#;
    let tree = tree(&program.has_static(next), blocks, words);
    let expected = "\
p::LIST 48 0
  Box<p::Node> 48 1
    next: Box<p::Node> 16 1
    ? type unknown 16 1
";
    assert_eq!(shown(&tree), expected);
}

#[test]
fn equal_contents_are_copies_whatever_follows_them_in_their_last_word() {
    let mut program = Program::default();
    let byte = program.number("u8", 1);
    let inner = program.vector(byte);
    let outer = program.vector(inner);
    let vector = |address: &str, length: u64| format!(r#""{address}","8","{length:x}""#);
    let blocks = format!(
        r#"{{"req":72,"addr":"1000","contents":[{},{},{}]}},
        {{"req":8,"addr":"2000","contents":["1111116564636261"]}},
        {{"req":8,"addr":"3000","contents":["2222226564636261"]}},
        {{"req":8,"addr":"4000","contents":["2222226564636262"]}}"#,
        vector("2000", 5),
        vector("3000", 5),
        vector("4000", 5)
    );
    let words = r#"{"module":"/p","offset":"8","name":"p::NAMES","to":"1000",
        "around":["0","0","0","1000","3","3","0"]}"#;
    let tree = tree(&program.has_static(outer), &blocks, words);
    assert_eq!(shown(&tree), "p::NAMES 96 0\n  Vec<Vec<u8>> 96 1\n    Vec<u8> 24 3\n");
    let row = &tree.rows[0].children[0].children[0];
    assert_eq!((row.compared, row.copies, row.copied_blocks), (24, 8, 1));
}

#[test]
fn a_variant_that_is_gone_holds_nothing() {
    let mut program = Program::default();
    let number = program.number("u64", 8);
    let leaf = program.structure("p::Leaf", 16, &[("key", 0, number)]);
    let leaf = program.boxed(leaf);
    let full = program.structure("p::Slot::Full", 16, &[("__0", 8, leaf)]);
    let empty = program.structure("p::Slot::Empty", 16, &[]);
    let variant = |value, of| Variant { value: Some(value), field: field(("", 0, of)) };
    let slot = program.add(
        "p::Slot",
        16,
        TypeKind::Enum {
            tag: Some(Tag { offset: 0, size: 8 }),
            variants: vec![variant(0, empty), variant(1, full)],
        },
    );
    let slots = program.vector(slot);
    let blocks = r#"{"req":32,"addr":"1000","contents":["1","2000","0","3000"]},
        {"req":16,"addr":"2000"},{"req":16,"addr":"3000"}"#;
    let words = r#"{"module":"/p","offset":"8","name":"p::SLOTS","to":"1000",
        "around":["0","0","0","1000","2","2","0"]}"#;
    let tree = tree(&program.has_static(slots), blocks, words);
    let expected = "\
p::SLOTS 48 0
  Vec<p::Slot> 48 1
    0: Box<p::Leaf> 16 1
held from a stack or a library, or leaked 16 0
  type unknown 16 1
";
    assert_eq!(shown(&tree), expected);
}
