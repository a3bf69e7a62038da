// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/lookup_table.h"

#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/runtime/state/lookup_rows.h"
#include "framework/runtime/state/resource_handle.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {
namespace {

std::unique_ptr<LookupRows> no_rows(const LookupSpec& spec) {
  return std::make_unique<LookupRows>(spec.key, spec.value, spec.value_shape);
}

std::string spec_text(const LookupSpec& spec) {
  return concat(spec.is_static ? "HashTable" : "MutableHashTable", " of ", spec.key, " keys and ",
                spec.value, spec.value_shape, " values");
}

}  // namespace

LookupTable::LookupTable(std::string name, const LookupSpec& spec)
    : name_(std::move(name)), spec_(spec), rows_(no_rows(spec)), initialized_(!spec.is_static) {}

LookupTable::~LookupTable() = default;

std::shared_lock<ForkSharedMutex> LookupTable::reading() const {
  const std::lock_guard turn(turn_);
  return std::shared_lock(mutex_);
}

std::pair<std::unique_lock<ForkMutex>, std::unique_lock<ForkSharedMutex>> LookupTable::writing() {
  std::unique_lock turn(turn_);
  std::unique_lock lock(mutex_);
  return {std::move(turn), std::move(lock)};
}

// --- Checks -------------------------------------------------------------------------------------

void LookupTable::check_keys(const Tensor& keys) const {
  if (keys.dtype() == spec_.key) return;
  throw invalid_argument("the keys of table ", quoted(name_), " are of dtype ", spec_.key,
                         ", given are ", keys);
}

void LookupTable::check_default(const Tensor& value) const {
  if (value.dtype() == spec_.value && value.shape() == spec_.value_shape) return;
  throw invalid_argument("a value of table ", quoted(name_), " is ", spec_.value, spec_.value_shape,
                         ", default_value is ", value);
}

void LookupTable::check_export(DType keys, DType values) const {
  if (keys == spec_.key && values == spec_.value) return;
  throw invalid_argument("table ", quoted(name_), " has keys of dtype ", spec_.key,
                         " and values of dtype ", spec_.value, "; asked for are ", keys, " and ",
                         values);
}

void LookupTable::check_pairs(const Tensor& keys, const Tensor& values) const {
  check_keys(keys);
  const Shape wanted = keys.shape().concatenated(spec_.value_shape);
  if (values.dtype() == spec_.value && values.shape() == wanted) return;
  throw invalid_argument("for keys ", keys, " table ", quoted(name_), " takes values ", spec_.value,
                         wanted, ", given are ", values);
}

void LookupTable::check_changes(std::string_view what) const {
  if (!spec_.is_static) return;
  throw unimplemented(what, " is not supported by table ", quoted(name_),
                      ": it is initialized once; a MutableHashTable can be changed");
}

void LookupTable::check_static() const {
  if (spec_.is_static) return;
  throw invalid_argument("Table ", quoted(name_),
                         " is not initializable: it can be changed at any time, so insert into it");
}

// --- Reading ------------------------------------------------------------------------------------

LookupTable::Reading LookupTable::read() const {
  std::shared_lock<ForkSharedMutex> lock = reading();
  if (!initialized_) {
    throw failed_precondition("Table not initialized: run the initializer of table ", quoted(name_),
                              ", or tables_initializer(), before it is read");
  }
  return {std::move(lock), *rows_};
}

void LookupTable::Reading::find(const Tensor& keys, const Tensor& default_value, int64_t begin,
                                int64_t end, Tensor& output) const {
  rows_.find(keys, default_value, begin, end, output);
}
Tensor LookupTable::Reading::keys() const { return rows_.keys(); }
Tensor LookupTable::Reading::values() const { return rows_.values(); }

int64_t LookupTable::size() const {
  const auto lock = reading();
  return rows_->size();
}

// --- Changing -----------------------------------------------------------------------------------

void LookupTable::insert(const Tensor& keys, const Tensor& values) {
  check_changes("Insert");
  check_pairs(keys, values);
  const auto lock = writing();
  rows_->insert(keys, values);
}

void LookupTable::remove(const Tensor& keys) {
  check_changes("Remove");
  check_keys(keys);
  const auto lock = writing();
  rows_->remove(keys);
}

void LookupTable::replace(const Tensor& keys, const Tensor& values) {
  check_changes("ImportValues");
  check_pairs(keys, values);
  std::unique_ptr<LookupRows> rows = no_rows(spec_);
  rows->insert(keys, values);
  const auto lock = writing();
  rows_.swap(rows);
}

void LookupTable::throw_other_content() const {
  throw failed_precondition("Table was already initialized with different data: table ",
                            quoted(name_),
                            " keeps what it has; one of another shared_name is another table");
}

bool LookupTable::is_initialized_with(const Tensor& keys, const Tensor& values) const {
  const auto lock = reading();
  if (!initialized_) return false;
  if (!rows_->is_same(keys, values)) throw_other_content();
  return true;
}

// Rows are made without the lock; of two who do so at once the second finds the first's.
void LookupTable::initialize(const Tensor& keys, const Tensor& values) {
  check_static();
  check_pairs(keys, values);
  if (is_initialized_with(keys, values)) return;
  std::unique_ptr<LookupRows> rows = no_rows(spec_);
  rows->insert_new(keys, values);
  {
    const auto lock = writing();
    if (!initialized_) {
      rows_.swap(rows);
      initialized_ = true;
      return;
    }
  }
  is_initialized_with(keys, values);
}

// --- From a handle or a name --------------------------------------------------------------------

LookupTable& lookup_table_from(const Tensor& handle) {
  return resource_from<LookupTable>(handle, "a lookup table's handle");
}

IntrusivePtr<LookupTable> named_lookup_table(ResourceManager& resources, std::string_view container,
                                             std::string_view name, const LookupSpec& spec) {
  const auto make = [&] { return make_counted<LookupTable>(std::string(name), spec); };
  if (name.empty()) return make();
  auto found = resources.lookup_or_create<LookupTable>(container, name, make);
  if (found->spec() == spec) return found;
  throw invalid_argument("table ", quoted(name), " is a ", spec_text(found->spec()),
                         "; it is asked for as a ", spec_text(spec));
}

}  // namespace treenail
