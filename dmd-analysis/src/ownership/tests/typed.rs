//! Trees of programs whose types are known: a few types, as debug information has them.

use super::{scan, text};
use crate::ownership::{
    MeasureRules, OwnerTree, OwnerTreeOptions, RootChoice, measure, needed_types,
};
use crate::read::Dump;
use crate::symbols::Types;
use crate::symbols::types::{
    Field, Local, LocalPart, LocalPlace, StaticVariable, Tag, ThreadLocal, Type, TypeId, TypeKind,
    Variant,
};

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
        self.0.statics.push(StaticVariable { address: 8, of, line: 7 });
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
fn an_iterator_over_a_vector_owns_what_was_not_taken_yet() {
    let mut program = Program::default();
    let number = program.number("u64", 8);
    let boxed = program.boxed(number);
    let pointer = program.add("*const Box<u64>", 8, TypeKind::Pointer(Some(boxed)));
    let iterator = program.structure(
        "alloc::vec::into_iter::IntoIter<Box<u64>, alloc::alloc::Global>",
        32,
        &[("buf", 0, pointer), ("cap", 8, number), ("ptr", 16, pointer), ("end", 24, pointer)],
    );
    program.0.list[iterator.0 as usize].arguments = vec![("T".into(), boxed)];
    // One was taken from the front and one from the back: their blocks may be others' since.
    let blocks = r#"{"req":32,"addr":"1000","contents":["2000","3000","4000","5000"]},
        {"req":8,"addr":"2000"},{"req":16,"addr":"3000"},{"req":32,"addr":"4000"},
        {"req":64,"addr":"5000"}"#;
    let words = r#"{"module":"/p","offset":"8","name":"p::REST","to":"1000",
        "around":["0","0","0","1000","4","1008","1018"]}"#;
    let tree = tree(&program.has_static(iterator), blocks, words);
    let expected = "\
p::REST 80 0
  IntoIter<Box<u64>> 80 1
    Box<u64> 48 2
held from a stack or a library, or leaked 72 0
  type unknown 72 2
";
    assert_eq!(shown(&tree), expected);
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

#[test]
fn a_reporter_would_measure_what_fields_lead_to_that_can_be_measured() {
    let mut program = Program::default();
    let number = program.number("u64", 8);
    let leaf = program.structure("p::Leaf", 16, &[("key", 0, number)]);
    let leaf = program.boxed(leaf);
    let rope = program.structure("rope::Rope", 8, &[("leaf", 0, leaf)]);
    let fields = [("leaf", 0, leaf), ("rope", 8, rope), ("skipped", 16, leaf)];
    let stock = program.structure("p::Stock", 24, &fields);
    let types = program.has_static(stock);
    let words = r#"{"module":"/p","offset":"8","name":"p::STOCK","to":"1000"},
        {"module":"/p","offset":"10","name":"p::STOCK","to":"2000"},
        {"module":"/p","offset":"18","name":"p::STOCK","to":"3000"}"#;
    let blocks = r#"{"req":16,"addr":"1000"},{"req":32,"addr":"2000"},{"req":64,"addr":"3000"}"#;
    let dump: Dump = scan(blocks, &format!(r#""statics":[{words}]"#));
    let choice = RootChoice { statics: &|name| name == "p::STOCK", variables: &|_, _| None };
    let bytes = |rules: &MeasureRules| {
        let roots = measure(&dump, &types, rules, &choice).expect("it is a scan");
        assert_eq!((roots.len(), roots[0].line), (1, Some(7)));
        let of_field = roots[0].fields.iter().map(|share| (share.name.clone(), share.blocks.bytes));
        (roots[0].unreported.bytes, of_field.collect::<Vec<_>>())
    };
    let mut rules = MeasureRules::default();
    rules.types.extend(["p::Stock", "p::Leaf"].map(str::to_owned));
    rules.ignored.insert("p::Stock.skipped".to_owned());
    assert_eq!(bytes(&rules), (16, vec![("p::Stock.leaf".to_owned(), 16)]));
    assert_eq!(needed_types(&types, &rules, &["p::Stock"]).crates.len(), 0);
    rules.crates.insert("rope".to_owned());
    assert_eq!(bytes(&rules).0, 48);
    let needed = needed_types(&types, &rules, &["p::Stock"]);
    let rope = ("p::Stock.rope".to_owned(), "rope".to_owned());
    assert_eq!(needed.crates.into_iter().collect::<Vec<_>>(), [rope]);
    rules.ignored.clear();
    assert_eq!(bytes(&rules).0, 112);
    rules.types.clear();
    assert_eq!(bytes(&rules).0, 0);
}

#[test]
fn variables_of_functions_hold_what_no_owner_elsewhere_does() {
    let mut program = Program::default();
    let number = program.number("u64", 8);
    let boxed = program.boxed(number);
    let pair = program.structure("p::Pair", 16, &[("left", 0, boxed), ("right", 8, boxed)]);
    let local = |frame, depth, name: &str, of, place| Local {
        frame,
        depth,
        name: name.to_owned(),
        of,
        parts: vec![LocalPart { place, size: None, offset: 0 }],
    };
    program.0.locals = vec![
        local(0, 0, "number", boxed, LocalPlace::Register(3)),
        local(1, 0, "pair", pair, LocalPlace::Memory(0x7100)),
        // An inlined call has the caller's value.
        local(1, 1, "self", pair, LocalPlace::Memory(0x7100)),
        // Moved into a static since.
        local(1, 0, "moved", boxed, LocalPlace::Memory(0x7110)),
    ];
    let mut types = program.has_static(boxed);
    types.thread_locals = vec![ThreadLocal { name: "p::CACHE".into(), of: boxed, below: 0x20 }];
    let blocks = r#"{"req":64,"addr":"1000"},{"req":32,"addr":"1100"},{"req":16,"addr":"1200"},
        {"req":8,"addr":"1300"},{"req":128,"addr":"1400"},{"req":256,"addr":"1500"}"#;
    let word = |offset: u64, to: u64| {
        let name = "stack and thread-locals of thread 7";
        format!(r#"{{"module":"(process)","offset":"{offset:x}","name":"{name}","to":"{to:x}"}}"#)
    };
    let words = [
        r#"{"module":"(process)","offset":"3","name":"registers of thread 7","to":"1000"}"#.into(),
        word(0x7108, 0x1100),
        word(0x7110, 0x1200),
        r#"{"module":"/p","offset":"8","name":"p::A","to":"1200"}"#.into(),
        // Beside variables, and behind the frames.
        word(0x7180, 0x1300),
        word(0x9000 - 0x20, 0x1400),
        word(0x9000 - 0x40, 0x1500),
    ];
    let frames = r#""threads":[{"id":0,"tid":7,"name":"io","pointer":"9000"}],"frames":[
        {"thread":7,"module":"/p","offset":"9","low":"7000","high":"7100"},
        {"thread":7,"module":"/p","offset":"a","low":"7100","high":"7200","isFirst":true}]"#;
    let mut dump = scan(blocks, &format!(r#""statics":[{}],{frames}"#, words.join(",")));
    let ours = dump.extension.as_mut().expect("it is ours");
    ours.frames[0].functions = vec!["p::wait".into()];
    ours.frames[1].functions = vec!["p::inlined".into(), "p::main".into()];
    let tree = OwnerTree::new(&dump, &types, &OwnerTreeOptions::default()).expect("it is a scan");
    let expected = "\
thread 7 (io) 488 0
  thread-locals 384 0
    ? type unknown 256 1
    p::CACHE: Box<u64> 128 0
      Box<u64> 128 1
  p::wait 64 0
    number: Box<u64> 64 0
      Box<u64> 64 1
  p::main 40 0
    pair: p::Pair 32 0
      right: Box<u64> 32 1
    ? type unknown 8 1
    moved: Box<u64> 0 0
p::A 16 0
  Box<u64> 16 1
";
    assert_eq!(shown(&tree), expected);
}

#[test]
fn a_variable_that_owns_holds_what_blocks_borrow_and_not_what_statics_borrow() {
    let mut program = Program::default();
    let number = program.number("u64", 8);
    let boxed = program.boxed(number);
    let reference = program.add("&u64", 8, TypeKind::Pointer(Some(number)));
    let view = program.structure("p::View", 16, &[("seen", 0, reference), ("other", 8, number)]);
    let boxed_view = program.boxed(view);
    let pair = [("view", 0, boxed_view), ("leaked", 8, reference)];
    let pair = program.structure("p::Pair", 16, &pair);
    let local = |name: &str, place| Local {
        frame: 0,
        depth: 0,
        name: name.to_owned(),
        of: boxed,
        parts: vec![LocalPart { place: LocalPlace::Memory(place), size: None, offset: 0 }],
    };
    program.0.locals = vec![local("kept", 0x7000), local("moved", 0x7008)];
    let types = program.has_static(pair);
    let blocks = r#"{"req":16,"addr":"1000","contents":["1100","0"]},{"req":64,"addr":"1100"},
        {"req":32,"addr":"1200"}"#;
    let words = r#"{"module":"/p","offset":"8","name":"p::A","to":"1000"},
        {"module":"/p","offset":"10","name":"p::A","to":"1200"},
        {"module":"(process)","offset":"7000","name":"stack of thread 7","to":"1100"},
        {"module":"(process)","offset":"7008","name":"stack of thread 7","to":"1200"}"#;
    let frames = r#""frames":[{"thread":7,"module":"/p","offset":"9","low":"7000","high":"7100"}]"#;
    let mut dump = scan(blocks, &format!(r#""statics":[{words}],{frames}"#));
    let ours = dump.extension.as_mut().expect("it is ours");
    ours.frames[0].functions = vec!["p::main".into()];
    let tree = OwnerTree::new(&dump, &types, &OwnerTreeOptions::default()).expect("it is a scan");
    let expected = "\
thread 7 64 0
  p::main 64 0
    kept: Box<u64> 64 0
      Box<u64> 64 1
    moved: Box<u64> 0 0
p::A 48 0
  leaked: &u64 32 1
  view: Box<p::View> 16 1
";
    assert_eq!(shown(&tree), expected);
}

#[test]
fn variables_of_two_threads_hold_a_block_together() {
    let mut program = Program::default();
    let number = program.number("u64", 8);
    let boxed = program.boxed(number);
    let local = |frame, name: &str, place| Local {
        frame,
        depth: 0,
        name: name.to_owned(),
        of: boxed,
        parts: vec![LocalPart { place: LocalPlace::Memory(place), size: None, offset: 0 }],
    };
    program.0.locals = vec![local(0, "a", 0x7000), local(0, "b", 0x7008), local(1, "c", 0x8000)];
    let types = program.has_static(number);
    let word = |thread: u64, offset: u64, to: u64| {
        let name = format!("stack and thread-locals of thread {thread}");
        format!(r#"{{"module":"(process)","offset":"{offset:x}","name":"{name}","to":"{to:x}"}}"#)
    };
    // Two of one function: the function's. Of two threads: none's alone.
    let words = [
        word(7, 0x7000, 0x1000),
        word(7, 0x7008, 0x1000),
        word(7, 0x7008, 0x1100),
        word(8, 0x8000, 0x1100),
    ];
    let frames = r#""frames":[{"thread":7,"module":"/p","offset":"9","low":"7000","high":"7100"},
        {"thread":8,"module":"/q","offset":"9","low":"8000","high":"8100"}]"#;
    let blocks = r#"{"req":64,"addr":"1000"},{"req":32,"addr":"1100"}"#;
    let mut dump = scan(blocks, &format!(r#""statics":[{}],{frames}"#, words.join(",")));
    let ours = dump.extension.as_mut().expect("it is ours");
    ours.frames[0].functions = vec!["p::main".into()];
    let tree = OwnerTree::new(&dump, &types, &OwnerTreeOptions::default()).expect("it is a scan");
    let expected = "\
thread 7 64 0
  p::main 64 0
    u64 64 1
    a: Box<u64> 0 0
    b: Box<u64> 0 0
held by several, and by none alone 32 0
  b: Box<u64> in p::main of thread 7 and c: Box<u64> in q of thread 8 32 0
    u64 32 1
thread 8 0 0
  q 0 0
    c: Box<u64> 0 0
";
    assert_eq!(shown(&tree), expected);
}

#[test]
fn a_thread_hangs_on_its_handle_with_what_both_hold() {
    let mut program = Program::default();
    let number = program.number("u64", 8);
    let boxed = program.boxed(number);
    let types = program.has_static(boxed);
    let word = |thread: u64, offset: u64, to: u64| {
        let name = format!("stack and thread-locals of thread {thread}");
        format!(r#"{{"module":"(process)","offset":"{offset:x}","name":"{name}","to":"{to:x}"}}"#)
    };
    // The static's block has the handles of 7, which is the first thread, and of 8. Only 9 itself
    // leads to the handle of 9, and a static has its number in a list of threads.
    let words = [
        r#"{"module":"/p","offset":"8","name":"p::A","to":"1000"}"#.into(),
        word(7, 0x7000, 0x1300),
        word(8, 0x8000, 0x1100),
        word(9, 0x9000, 0x1200),
        r#"{"module":"/p","offset":"10","name":"p::THREADS","to":"f9"}"#.into(),
    ];
    let blocks = r#"{"req":64,"addr":"1000","contents":["f7","f8","1100"]},
        {"req":32,"addr":"1100"},{"req":16,"addr":"1200","contents":["f9"]},{"req":8,"addr":"1300"}"#;
    let frame = |thread: u64, low: u64| {
        let high = low + 0x100;
        format!(
            r#"{{"thread":{thread},"module":"/q","offset":"9","low":"{low:x}","high":"{high:x}"}}"#
        )
    };
    let frames = [frame(7, 0x7000), frame(8, 0x8000), frame(9, 0x9000)].join(",");
    let threads: Vec<String> =
        (7..=9).map(|tid| format!(r#"{{"id":{tid},"tid":{tid},"pointer":"f{tid}"}}"#)).collect();
    let threads = threads.join(",");
    let dump = scan(
        blocks,
        &format!(r#""statics":[{}],"threads":[{threads}],"frames":[{frames}]"#, words.join(",")),
    );
    let tree = OwnerTree::new(&dump, &types, &OwnerTreeOptions::default()).expect("it is a scan");
    let expected = "\
p::A 96 0
  Box<u64> 96 1
    ? type unknown 32 1
    thread 8 0 0
      q 0 0
thread 9 16 0
  q 16 0
    ? type unknown 16 1
thread 7 8 0
  q 8 0
    ? type unknown 8 1
p::THREADS 0 0
";
    assert_eq!(shown(&tree), expected);
}
