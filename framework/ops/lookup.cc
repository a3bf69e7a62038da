// SPDX-License-Identifier: Apache-2.0
// Lookup tables: values by key, which wait between runs. No order is put between operations on one
// table in one run.
#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

constexpr char kKeyTypes[] = "Tin: {int32, int64, string}";
constexpr char kValueTypes[] = "Tout: {bool, int32, int64, float, double, string}";

// --- Handles ------------------------------------------------------------------------------------

// What is known of a handle, as of a queue's: a key's dtype, and a value's dtype and shape.
void table_shape(ShapeContext& c) {
  const bool rows = c.op().def().attr_index("value_shape") >= 0;
  const PartialShape value = rows ? c.op().get<PartialShape>("value_shape") : PartialShape(Shape());
  if (!value.fully_known()) throw invalid_argument("value_shape must be known, it is ", value);
  c.set_output(0, Shape());
  c.set_handle(0, {.components = {{c.op().get_type("key_dtype"), Shape()},
                                  {c.op().get_type("value_dtype"), value}}});
}

void check_type(const HandleInfo& wanted, DType given, const char* what) {
  if (wanted.dtype == given) return;
  throw invalid_argument("the table's ", what, "s are of dtype ", wanted.dtype, ", given are ",
                         given);
}

// Of the table behind input 0; null: nothing is known. Errors: other dtypes than those.
const HandleInfo* table_of(const ShapeContext& c, DType key, DType value) {
  c.with_rank(0, 0);
  const HandleInfo* const handle = c.handle(0);
  if (handle == nullptr || handle->components.size() != 2) return nullptr;
  if (key != DType::kInvalid) check_type(handle->components[0], key, "key");
  if (value != DType::kInvalid) check_type(handle->components[1], value, "value");
  return handle;
}

// --- Shapes -------------------------------------------------------------------------------------

void find_shape(ShapeContext& c) {
  const HandleInfo* const table = table_of(c, c.op().input_type(1), c.op().input_type(2));
  PartialShape value = c.input(2);
  if (table != nullptr)
    value = ShapeContext::merge(value, table->components[1].shape, "default_value and values");
  c.set_output(0, c.input(1).concatenated(value));
}

// values: the keys' shape, and behind it that of a value.
void pairs_shape(ShapeContext& c) {
  const HandleInfo* const table = table_of(c, c.op().input_type(1), c.op().input_type(2));
  const PartialShape& keys = c.input(1);
  if (!keys.rank_known()) return;
  const PartialShape values = c.with_rank_at_least(2, keys.rank());
  if (table != nullptr) {
    ShapeContext::merge(keys.concatenated(table->components[1].shape), values,
                        "the keys' shape before a value's, and the values'");
  } else if (values.rank_known()) {
    ShapeContext::merge(keys, values.sub(0, keys.rank()), "keys and values");
  }
}

void initialize_shape(ShapeContext& c) {
  table_of(c, c.op().input_type(1), c.op().input_type(2));
  ShapeContext::merge(c.with_rank(1, 1), c.with_rank(2, 1), "keys and values");
}

void text_file_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.with_rank(1, 0);
  if (c.op().get_int("vocab_size") == 0)
    throw invalid_argument("vocab_size = 0, needed is how many lines, or -1 for all");
  const std::string& delimiter = c.op().get_string("delimiter");
  if (delimiter.size() != 1) {
    throw invalid_argument("delimiter must be one byte, it has ", delimiter.size());
  }
}

void remove_shape(ShapeContext& c) { table_of(c, c.op().input_type(1), DType::kInvalid); }

void size_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.set_output(0, Shape());
}

void export_shape(ShapeContext& c) {
  const HandleInfo* const table = table_of(c, c.op().output_type(0), c.op().output_type(1));
  const PartialShape row = table == nullptr ? PartialShape() : table->components[1].shape;
  c.set_output(0, PartialShape{kUnknown});
  c.set_output(1, PartialShape{kUnknown}.concatenated(row));
}

// --- Declarations -------------------------------------------------------------------------------

constexpr char kOfAll[] =
    "\n\nThe table is that of the name `shared_name` in `container`, or of this operation's name "
    "where it is empty; in immediate execution an empty name gives a new table each time. "
    "use_node_name_sharing: of no effect.\n"
    "Errors: InvalidArgument when the name belongs to a table that is another in any respect.";

void register_tables(OpRegistry& r) {
  const auto declare = [&](const char* name, const std::string& doc) {
    return r.op(name, HostAccess::kNone)
        .output("table_handle: resource")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .attr("use_node_name_sharing: bool = false")
        .attr("key_dtype: {int32, int64, string}")
        .attr("value_dtype: {bool, int32, int64, float, double, string}")
        .stateful()
        .not_differentiable()
        .shape(table_shape)
        .doc(doc + kOfAll);
  };
  declare("HashTableV2",
          "The handle of a table that is filled once, by InitializeTableV2 or "
          "InitializeTableFromTextFileV2, and read from then on.");
  declare("MutableHashTableV2", "The handle of a table that can be changed at any time.");
  declare("MutableHashTableOfTensorsV2",
          "The handle of a table that can be changed at any time, whose values are tensors.\n\n"
          "value_shape: of a value; known.")
      .attr("value_shape: shape = []");
}

OpDeclaration on_table(OpRegistry& r, const char* name, HostAccess access = HostAccess::kNone) {
  return r.op(name, access)
      .input("table_handle: resource")
      .stateful()
      .access("table_handle", Access::kOpaque)
      .not_differentiable();
}

constexpr char kOtherTypes[] =
    "InvalidArgument for dtypes, or a shape of values, that are not the table's";

void register_reading(OpRegistry& r) {
  on_table(r, "LookupTableFindV2")
      .input("keys: Tin")
      .input("default_value: Tout")
      .output("values: Tout")
      .attr(kKeyTypes)
      .attr(kValueTypes)
      .shape(find_shape)
      .doc(std::string("The values of keys in a table: the keys' shape, and behind it that of a "
                       "value.\n\n"
                       "default_value: of one value; it stands for keys that are not there.\n"
                       "Errors: FailedPrecondition where the table is not initialized; ") +
           kOtherTypes + ".");
  on_table(r, "LookupTableSizeV2")
      .output("size: int64")
      .shape(size_shape)
      .doc("How many keys a table has, a scalar; 0 before it is initialized.");
  on_table(r, "LookupTableExportV2")
      .output("keys: Tkeys")
      .output("values: Tvalues")
      .attr("Tkeys: {int32, int64, string}")
      .attr("Tvalues: {bool, int32, int64, float, double, string}")
      .data_dependent_shape()
      .shape(export_shape)
      .doc(
          std::string("All that a table holds: keys [n] and values [n, ...], in the order in which "
                      "the keys came; what was there when a key was removed may have moved.\n\n"
                      "Errors: FailedPrecondition where the table is not initialized; ") +
          kOtherTypes + ".");
}

void register_writing(OpRegistry& r) {
  const std::string values =
      "\n\nvalues: the keys' shape, and behind it that of a value. Of a key that occurs twice the "
      "last value counts. All of it is done, or nothing.\n"
      "Errors: Unimplemented for a table that is initialized once; ResourceExhausted; ";
  const auto declare = [&](const char* name, const std::string& doc) {
    on_table(r, name)
        .input("keys: Tin")
        .input("values: Tout")
        .attr(kKeyTypes)
        .attr(kValueTypes)
        .shape(pairs_shape)
        .doc(doc + values + kOtherTypes + ".");
  };
  declare("LookupTableInsertV2",
          "Puts keys with their values into a table, or other values there.");
  declare("LookupTableImportV2", "Has a table hold these keys and values, and nothing else.");
  on_table(r, "LookupTableRemoveV2")
      .input("keys: Tin")
      .attr(kKeyTypes)
      .shape(remove_shape)
      .doc(std::string("Takes keys out of a table; those that are not there are no error.\n\n"
                       "Errors: Unimplemented for a table that is initialized once; ") +
           kOtherTypes + ".");
}

constexpr char kInitialized[] =
    "\n\nErrors: FailedPrecondition where it was initialized with other content, which stays, and "
    "where one key has two values; InvalidArgument for a table that is not initialized once; ";

void register_initializing(OpRegistry& r) {
  on_table(r, "InitializeTableV2")
      .input("keys: Tkey")
      .input("values: Tval")
      .attr("Tkey: {int32, int64, string}")
      .attr("Tval: {bool, int32, int64, float, double, string}")
      .shape(initialize_shape)
      .doc(std::string("Fills a table that is initialized once: values[i] is that of keys[i].") +
           kInitialized + kOtherTypes + ".");
  on_table(r, "InitializeTableFromTextFileV2", HostAccess::kFiles)
      .input("filename: string")
      .attr("key_index: int >= -2")
      .attr("value_index: int >= -2")
      .attr("vocab_size: int >= -1 = -1")
      .attr("delimiter: string = '\t'")
      .shape(text_file_shape)
      .doc(std::string(
               "Fills a table that is initialized once from the lines of a text file.\n\n"
               "key_index, value_index: the column, counted from 0, or -1 for the line's number, "
               "counted from 0 (int64), or -2 for the whole line. vocab_size: so many lines, at "
               "least as many as the file has; -1: all. delimiter: one byte, between columns.") +
           kInitialized +
           "InvalidArgument for lines that are empty, too few, without such columns, or whose "
           "numbers are none; NotFound, PermissionDenied.");
}

}  // namespace

void register_lookup_ops(OpRegistry& r) {
  register_tables(r);
  register_reading(r);
  register_writing(r);
  register_initializing(r);
  r.finish("lookup");
}

}  // namespace treenail
