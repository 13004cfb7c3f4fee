//! Tests messages and errors.

use anyhow::{Context, anyhow};
use dmd::assert_fully_reported;
use memreport::{MallocSizeOf, measure};
use prost::Message;
use prost_types::{Any, FileDescriptorProto, ListValue, Struct, Timestamp, Value, value::Kind};

use super::{owns_blocks, text, texts};

/// A message in the form that prost generates, with a field of shared bytes.
#[derive(Clone, PartialEq, Message, MallocSizeOf)]
struct Note {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(bytes = "bytes", tag = "2")]
    attached: bytes::Bytes,
    #[prost(message, repeated, tag = "3")]
    below: Vec<Note>,
    #[prost(map = "string, message", tag = "4")]
    links: std::collections::HashMap<String, Any>,
    #[prost(message, optional, tag = "5")]
    written: Option<Timestamp>,
}

fn note(depth: usize) -> Note {
    let link = Any { type_url: text(30), value: vec![1; 50] };
    Note {
        text: text(depth * 20),
        attached: vec![1; 100].into(),
        below: (0..depth).map(|_| note(depth - 1)).collect(),
        links: texts(depth).map(|name| (name, link.clone())).collect(),
        written: Some(Timestamp::default()),
    }
}

#[test]
fn messages() {
    assert_fully_reported!(note(3));
    let wire = bytes::Bytes::from(note(3).encode_to_vec());
    let read = Note::decode(wire.clone()).unwrap();
    // The bytes are slices of the input.
    assert_fully_reported!((wire, read));
}

#[test]
fn well_known_messages() {
    let kind = |kind| Value { kind: Some(kind) };
    let values = texts(9).map(|text| kind(Kind::StringValue(text))).collect();
    let list = kind(Kind::ListValue(ListValue { values }));
    let fields: std::collections::BTreeMap<_, _> =
        texts(30).map(|name| (name, list.clone())).collect();
    let inner = kind(Kind::StructValue(Struct { fields: fields.clone() }));
    assert_fully_reported!(Struct {
        fields: [(text(5), inner), (text(6), kind(Kind::BoolValue(true)))].into()
    });
    let file = FileDescriptorProto {
        name: Some(text(30)),
        dependency: texts(5).collect(),
        public_dependency: vec![1, 2],
        message_type: vec![prost_types::DescriptorProto {
            name: Some(text(9)),
            ..Default::default()
        }],
        ..Default::default()
    };
    assert_fully_reported!(prost_types::FileDescriptorSet { file: vec![file; 3] });
}

#[test]
fn errors() {
    assert_fully_reported!(anyhow!("a message of the program"));
    assert_fully_reported!(anyhow!("a message that was put {}", "together"));
    assert_fully_reported!(anyhow::Error::from(std::fmt::Error));
    assert_fully_reported!(
        anyhow::Error::from(std::io::Error::from(std::io::ErrorKind::NotFound)).context(1)
    );
    assert_fully_reported!(anyhow!("inner").context("outer").context(text(40)));
    let failed: anyhow::Result<()> = Err(std::io::Error::other(std::fmt::Error)).context("in vain");
    assert_fully_reported!(failed);
    // The text of an inner message is not measured.
    let blocks = measure(&anyhow!("of the program")).blocks;
    owns_blocks(&anyhow!(text(40)).context(text(50)), blocks + 2);
}

#[test]
fn fast_json() {
    use simd_json::{OwnedValue, to_borrowed_value, to_owned_value, to_tape};
    let source = r#"{"name": "some words", "numbers": [1, -2, 3.5, []], "nested": {"": {}, "a": [null, "b"]}}"#;
    assert_fully_reported!(to_owned_value(&mut source.to_owned().into_bytes()).unwrap());
    let mut bytes = source.to_owned().into_bytes();
    assert_fully_reported!(to_borrowed_value(&mut bytes).unwrap());
    let mut bytes = source.to_owned().into_bytes();
    assert_fully_reported!(to_tape(&mut bytes).unwrap());
    let mut wide = simd_json::owned::Object::default();
    for name in texts(100) {
        wide.insert(name.clone(), OwnedValue::from(name));
    }
    assert_fully_reported!(OwnedValue::from(wide.clone()));
    wide.clear();
    assert_fully_reported!(wide);
    assert_fully_reported!(simd_json::owned::Object::with_capacity(9));
    assert_fully_reported!(OwnedValue::from("a string"));
}
