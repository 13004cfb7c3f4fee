//! Tests the derive's hygiene: with nothing in scope, and with other items of the same names.
#![no_implicit_prelude]
#![forbid(unsafe_code)]
#![deny(missing_docs, unused_qualifications, elided_lifetimes_in_paths, single_use_lifetimes)]

#[derive(::memreport::MallocSizeOf)]
struct Record<'ops, T, const N: usize> {
    list: ::std::vec::Vec<T>,
    array: [::std::option::Option<T>; N],
    borrowed: &'ops str,
    #[malloc_size_of(ignore = "nothing to see")]
    _ignored: ::std::string::String,
    #[malloc_size_of(shallow, part)]
    outside: ::std::vec::Vec<::std::string::String>,
    #[malloc_size_of(with = measure, shared = here)]
    other: ::std::string::String,
}

fn measure<'measured>(text: &'measured ::std::string::String, ops: &::memreport::Ops<'measured>) {
    ops.add(text);
}

/// Items with the names that the generated code uses.
mod namesakes {
    #![expect(
        non_camel_case_types,
        non_upper_case_globals,
        dead_code,
        reason = "to be confused with"
    )]

    pub(crate) struct Ops;
    pub(crate) struct Field;
    pub(crate) struct memreport;
    pub(crate) struct core;
    pub(crate) struct usize;
    pub(crate) const ops: u8 = 1;
    pub(crate) const value: u8 = 2;
    pub(crate) const sizes: u8 = 3;
    pub(crate) const measured: u8 = 4;
    pub(crate) const other: u8 = 5;
    pub(crate) trait MallocSizeOf {}
    pub(crate) trait Clone {}
    pub(crate) trait Debug {}

    #[derive(::memreport::MallocSizeOf)]
    #[malloc_size_of(sizes = PartedSizes)]
    pub(crate) struct Parted {
        #[malloc_size_of(part)]
        pub(crate) text: ::std::string::String,
        pub(crate) unnamed: ::std::string::String,
    }

    #[derive(::memreport::MallocSizeOf)]
    pub(crate) enum Named<'measured> {
        Pair(::std::string::String, &'measured str),
        Field {
            ops: ::std::string::String,
            r#match: ::std::string::String,
            #[malloc_size_of(ignore = "nothing to see")]
            field_0: u8,
        },
    }
}

#[derive(::memreport::MallocSizeOf)]
#[malloc_size_of(sizes = OutsideSizes)]
struct Outside {
    #[malloc_size_of(part)]
    text: ::std::string::String,
}

/// A field whose methods have the same names as the generated calls.
#[derive(::memreport::MallocSizeOf)]
struct Methods(Inner);

#[derive(::memreport::MallocSizeOf)]
struct Inner(::std::string::String);

#[expect(dead_code, reason = "to be confused with")]
impl Inner {
    fn add_size_of_excluding_this(&self) -> ! {
        ::std::panic!("not this one")
    }
}

fn text() -> ::std::string::String {
    ::std::convert::From::from("text")
}

#[test]
fn derived_types_are_measured_anywhere() {
    let record = Record::<_, 1> {
        list: ::std::vec![text()],
        array: [::std::option::Option::Some(text())],
        borrowed: "lent",
        _ignored: text(),
        outside: ::std::vec![text()],
        other: text(),
    };
    ::std::assert_eq!(::memreport::measure(&record).blocks, 5);
    ::std::assert_eq!(record.borrowed.len(), 4);

    let field = namesakes::Named::Field { ops: text(), r#match: text(), field_0: 1 };
    ::std::assert_eq!(::memreport::measure(&field).blocks, 2);
    ::std::assert_eq!(::memreport::measure(&namesakes::Named::Pair(text(), "lent")).blocks, 1);
    ::std::assert_eq!(::memreport::measure(&Methods(Inner(text()))).blocks, 1);

    let mut sizes = ::memreport::sizes_of(&namesakes::Parted { text: text(), unnamed: text() });
    ::std::assert_eq!([sizes.text, sizes.rest, sizes.total()], [4, 4, 8]);
    sizes += sizes;
    ::std::assert_eq!(sizes.total(), 16);
    ::std::assert_eq!(::memreport::sizes_of(&Outside { text: text() }).total(), 4);
}
