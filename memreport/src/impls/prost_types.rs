//! Measures the well-known messages and descriptors of `prost-types`. *Exact*, except for the maps
//! of a `Struct`, which are std's.
//!
//! Generated messages can derive the trait by `prost_build::Config::type_attribute`.

use prost_types::{
    Any, Api, DescriptorProto, Duration, Enum, EnumDescriptorProto, EnumOptions, EnumValue,
    EnumValueDescriptorProto, EnumValueOptions, ExtensionRangeOptions, Field, FieldDescriptorProto,
    FieldMask, FieldOptions, FileDescriptorProto, FileDescriptorSet, FileOptions,
    GeneratedCodeInfo, ListValue, MessageOptions, Method, MethodDescriptorProto, MethodOptions,
    Mixin, OneofDescriptorProto, OneofOptions, ServiceDescriptorProto, ServiceOptions,
    SourceCodeInfo, SourceContext, Struct, Timestamp, Type, UninterpretedOption, Value,
    descriptor_proto, enum_descriptor_proto, generated_code_info, source_code_info,
    uninterpreted_option, value,
};

use crate::{MallocSizeOf, Ops};

owns_nothing!(Timestamp, Duration);
owns_nothing!(descriptor_proto::ReservedRange, enum_descriptor_proto::EnumReservedRange);

macro_rules! messages {
    ($($message:ty { $($field:ident),* $(,)? })*) => {$(
        impl MallocSizeOf for $message {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                $(self.$field.add_size_of_excluding_this(ops);)*
            }
        }
    )*};
}

messages! {
    Any { type_url, value }
    FieldMask { paths }
    Struct { fields }
    Value { kind }
    ListValue { values }
    SourceContext { file_name }
    Type { name, fields, oneofs, options, source_context }
    Field { name, type_url, options, json_name, default_value }
    Enum { name, enumvalue, options, source_context }
    EnumValue { name, options }
    prost_types::Option { name, value }
    Api { name, methods, options, version, source_context, mixins }
    Method { name, request_type_url, response_type_url, options }
    Mixin { name, root }
}

messages! {
    FileDescriptorSet { file }
    FileDescriptorProto {
        name, package, dependency, public_dependency, weak_dependency, message_type, enum_type, service,
        extension, options, source_code_info, syntax,
    }
    DescriptorProto {
        name, field, extension, nested_type, enum_type, extension_range, oneof_decl, options, reserved_range,
        reserved_name,
    }
    descriptor_proto::ExtensionRange { options }
    ExtensionRangeOptions { uninterpreted_option }
    FieldDescriptorProto { name, type_name, extendee, default_value, json_name, options }
    OneofDescriptorProto { name, options }
    EnumDescriptorProto { name, value, options, reserved_range, reserved_name }
    EnumValueDescriptorProto { name, options }
    ServiceDescriptorProto { name, method, options }
    MethodDescriptorProto { name, input_type, output_type, options }
}

messages! {
    FileOptions {
        java_package, java_outer_classname, go_package, objc_class_prefix, csharp_namespace, swift_prefix,
        php_class_prefix, php_namespace, php_metadata_namespace, ruby_package, uninterpreted_option,
    }
    MessageOptions { uninterpreted_option }
    FieldOptions { uninterpreted_option }
    OneofOptions { uninterpreted_option }
    EnumOptions { uninterpreted_option }
    EnumValueOptions { uninterpreted_option }
    ServiceOptions { uninterpreted_option }
    MethodOptions { uninterpreted_option }
    UninterpretedOption { name, identifier_value, string_value, aggregate_value }
    uninterpreted_option::NamePart { name_part }
    SourceCodeInfo { location }
    source_code_info::Location { path, span, leading_comments, trailing_comments, leading_detached_comments }
    GeneratedCodeInfo { annotation }
    generated_code_info::Annotation { path, source_file }
}

impl MallocSizeOf for value::Kind {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self {
            value::Kind::NullValue(_) | value::Kind::NumberValue(_) | value::Kind::BoolValue(_) => {
            }
            value::Kind::StringValue(text) => text.add_size_of_excluding_this(ops),
            value::Kind::StructValue(fields) => fields.add_size_of_excluding_this(ops),
            value::Kind::ListValue(values) => values.add_size_of_excluding_this(ops),
        }
    }
}
