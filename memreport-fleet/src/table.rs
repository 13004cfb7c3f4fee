//! Rows of a table in memory, column by column, and their Parquet file.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Int64Builder, ListBuilder, StringBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::schema::{Column, Kind, Table, VERSION};

/// The most rows of a row group: what a reader holds in memory at once.
const ROW_GROUP: usize = 1 << 17;

/// The most bytes of a dictionary. Texts beyond it are stored as they are, each time again.
const DICTIONARY: usize = 4 << 20;

/// A value of a row.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A whole number.
    Int(i64),
    /// A text.
    Text(&'a str),
    /// True or false.
    Bool(bool),
    /// A list of texts.
    Texts(&'a [Option<&'a str>]),
    /// A list of numbers.
    Ints(&'a [Option<i64>]),
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Value::Null, Value::Text)
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Value::Null, Value::Int)
    }
}

impl From<Option<u64>> for Value<'_> {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Value::Null, |number| Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
    }
}

/// Rows of one table.
#[derive(Debug)]
pub struct Rows {
    table: &'static Table,
    columns: Vec<Cells>,
    len: usize,
}

/// The values of a column.
#[derive(Debug)]
enum Cells {
    Int(Int64Builder),
    Text(StringBuilder),
    Bool(BooleanBuilder),
    Texts(ListBuilder<StringBuilder>),
    Ints(ListBuilder<Int64Builder>),
}

impl Cells {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Int => Cells::Int(Int64Builder::new()),
            Kind::Text => Cells::Text(StringBuilder::new()),
            Kind::Bool => Cells::Bool(BooleanBuilder::new()),
            Kind::Texts => Cells::Texts(ListBuilder::new(StringBuilder::new())),
            Kind::Ints => Cells::Ints(ListBuilder::new(Int64Builder::new())),
        }
    }

    fn push(&mut self, column: &Column, value: Value<'_>) {
        match (self, value) {
            (Cells::Int(cells), Value::Int(number)) => cells.append_value(number),
            (Cells::Int(cells), Value::Null) => cells.append_null(),
            (Cells::Text(cells), Value::Text(text)) => cells.append_value(text),
            (Cells::Text(cells), Value::Null) => cells.append_null(),
            (Cells::Bool(cells), Value::Bool(value)) => cells.append_value(value),
            (Cells::Bool(cells), Value::Null) => cells.append_null(),
            (Cells::Texts(cells), Value::Texts(list)) => cells.append_value(list.iter().copied()),
            (Cells::Texts(cells), Value::Null) => cells.append_null(),
            (Cells::Ints(cells), Value::Ints(list)) => cells.append_value(list.iter().copied()),
            (Cells::Ints(cells), Value::Null) => cells.append_null(),
            (_, value) => panic!("column {} takes no {value:?}", column.name),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Cells::Int(cells) => ArrayBuilder::finish(cells),
            Cells::Text(cells) => ArrayBuilder::finish(cells),
            Cells::Bool(cells) => ArrayBuilder::finish(cells),
            Cells::Texts(cells) => ArrayBuilder::finish(cells),
            Cells::Ints(cells) => ArrayBuilder::finish(cells),
        }
    }
}

impl Rows {
    /// Makes an empty list of rows.
    #[must_use]
    pub fn new(table: &'static Table) -> Self {
        let columns = table.all_columns().map(|column| Cells::new(column.kind)).collect();
        Rows { table, columns, len: 0 }
    }

    /// Adds a row: a value for each column.
    ///
    /// # Panics
    ///
    /// If the number or the types of the values are not the table's.
    pub fn push(&mut self, values: &[Value<'_>]) {
        assert_eq!(values.len(), self.columns.len(), "values of a row of {}", self.table.name);
        for ((cells, column), value) in
            self.columns.iter_mut().zip(self.table.all_columns()).zip(values)
        {
            cells.push(column, *value);
        }
        self.len += 1;
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the table.
    #[must_use]
    pub fn table(&self) -> &'static Table {
        self.table
    }

    /// Returns the rows as the bytes of a Parquet file. The same rows give the same bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the columns are too large for a file.
    pub fn parquet(mut self) -> Result<Vec<u8>, ParquetError> {
        let columns: Vec<ArrayRef> = self.columns.iter_mut().map(Cells::finish).collect();
        let schema = Arc::new(arrow_schema(self.table));
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        let properties = WriterProperties::builder()
            // Files are small: what is said of each page would be more than the pages.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_size(ROW_GROUP)
            .set_dictionary_page_size_limit(DICTIONARY)
            .set_created_by(concat!("memreport-fleet ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![KeyValue {
                key: "memreport.schema".to_owned(),
                value: Some(VERSION.to_string()),
            }]))
            .build();
        // Arrow's own schema says nothing that Parquet's does not, in a thousand bytes.
        let options =
            ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(Vec::new(), schema, options)?;
        writer.write(&batch)?;
        writer.into_inner()
    }
}

/// Returns the schema of a table's file.
fn arrow_schema(table: &'static Table) -> Schema {
    let list = |element| DataType::List(Arc::new(Field::new_list_field(element, true)));
    let fields = table.all_columns().map(|column| {
        let kind = match column.kind {
            Kind::Int => DataType::Int64,
            Kind::Text => DataType::Utf8,
            Kind::Bool => DataType::Boolean,
            Kind::Texts => list(DataType::Utf8),
            Kind::Ints => list(DataType::Int64),
        };
        Field::new(column.name, kind, true)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// Reads a Parquet file back as batches.
///
/// # Errors
///
/// Returns an error if it is no such file.
pub fn read_parquet(bytes: Vec<u8>) -> Result<Vec<RecordBatch>, ArrowError> {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))?;
    reader.build()?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::STACKS;
    use arrow_array::Array;

    #[test]
    fn rows_come_back_and_equal_rows_are_equal_files() {
        let file = || {
            let mut rows = Rows::new(&STACKS);
            let texts = [Some("a;\"é"), None];
            for id in [7, -7] {
                rows.push(&[
                    Value::Text("s"),
                    Value::Int(1),
                    Value::Text("shop"),
                    Value::Null,
                    Value::Text("h"),
                    Value::Int(id),
                    Value::Texts(&texts),
                    Value::Texts(&[]),
                    Value::Ints(&[Some(3), None]),
                    Value::Null,
                    Value::Null,
                    Value::Null,
                ]);
            }
            rows.parquet().expect("it is small")
        };
        assert_eq!(file(), file());
        let batches = read_parquet(file()).expect("it is a file");
        assert_eq!(batches.len(), 1);
        let batch = &batches[0];
        assert_eq!(batch.num_rows(), 2);
        assert!(batch.column(3).is_null(0));
        let functions = batch.column_by_name("functions").expect("it is a column");
        let text = format!("{functions:?}");
        assert!(text.contains("a;\\\"é"), "{text}");
    }
}
