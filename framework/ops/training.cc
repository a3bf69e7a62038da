// SPDX-License-Identifier: Apache-2.0
// Optimiser updates: one step of one variable, in place, with its slots (running sums of the
// optimiser) beside it. Dense updates take a gradient of the variable's shape, sparse ones rows of
// it. Formulas stand in each op's doc; plain gradient descent on rows is ResourceScatterSub.
#include <string_view>

#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

// Inputs of an update are the handles first, then scalars, the gradient, and for sparse updates its
// indices.
void update_shape(ShapeContext& c) {
  const OpInstance& op = c.op();
  const int indices = op.def().input_index("indices");
  const int gradient = op.def().input_index(op.def().input_index("delta") >= 0 ? "delta" : "grad");
  PartialShape variable;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (op.input_type(i) != DType::kResource) {
      if (i != gradient && i != indices) c.with_rank(i, 0);
      continue;
    }
    c.with_rank(i, 0);
    const HandleInfo* info = c.handle(i);
    if (info == nullptr) continue;
    if (info->dtype != DType::kInvalid && info->dtype != op.get_type("T")) {
      throw invalid_argument(op.input_name(i), " is a variable of dtype ", info->dtype,
                             ", the update works on ", op.get_type("T"));
    }
    if (!variable.compatible(info->shape)) {
      throw invalid_argument(op.input_name(0), " and ", op.input_name(i),
                             " do not have the same shape: ", variable, " ", info->shape);
    }
    variable = ShapeContext::merge(variable, info->shape, "variables");
  }
  PartialShape wanted = variable;
  if (indices >= 0) {
    const PartialShape rows = c.with_rank(indices, 1);
    if (!variable.rank_known()) return;
    if (variable.rank() < 1)
      throw invalid_argument("var must be at least 1 dimensional, it is a scalar");
    wanted = variable.with_dim(0, rows[0]);
  }
  if (!wanted.compatible(c.input(gradient))) {
    throw invalid_argument(
        op.input_name(gradient), " has shape ", c.input(gradient), ", needed is ", wanted,
        indices >= 0 ? " (indices.shape + var.shape[1:])" : " (the shape of var)");
  }
}

// `handles` and `scalars`: names separated by spaces. One dense and one sparse op per rule.
struct Update {
  const char* name;
  const char* handles;
  const char* before;  // scalars before the gradient
  const char* after;   // scalars after it
  const char* attr;    // one more attribute, or ""
  const char* title;
  const char* formula;
};

void add_inputs(OpDeclaration& op, std::string_view names, std::string_view type, bool handles) {
  while (!names.empty()) {
    const size_t end = names.find(' ');
    const std::string_view name = names.substr(0, end);
    op.input(concat(name, ": ", type));
    if (handles) op.access(name, Access::kWrite);
    if (end == std::string_view::npos) break;
    names.remove_prefix(end + 1);
  }
}

void declare(OpRegistry& r, const Update& update, bool sparse) {
  OpDeclaration op = r.op(concat(sparse ? "ResourceSparseApply" : "ResourceApply", update.name),
                          HostAccess::kNone);
  const std::string_view gradient =
      std::string_view(update.name) == "GradientDescent" ||
              (std::string_view(update.name) == "ProximalGradientDescent" && !sparse)
          ? "delta"
          : "grad";
  add_inputs(op, update.handles, "resource", true);
  add_inputs(op, update.before, "T", false);
  op.input(concat(gradient, ": T"));
  if (sparse) op.input("indices: Tindices");
  add_inputs(op, update.after, "T", false);
  op.attr("T: {bfloat16, half, float, double}");
  if (sparse) op.attr("Tindices: {int32, int64}");
  if (update.attr[0] != '\0') op.attr(update.attr);
  op.attr("use_locking: bool = false").stateful().shape(update_shape).not_differentiable();
  op.doc(concat(update.title, sparse ? ", applied to rows" : "", ".\n\n", update.formula,
                sparse ? "\nOnly rows `indices` of var and slots change; grad[i] belongs to row "
                         "indices[i]. Repeated indices are "
                         "applied one after the other.\nErrors: InvalidArgument for an index "
                         "outside var, which is then unchanged;"
                       : "\nErrors:",
                " FailedPrecondition when var or a slot is uninitialised. use_locking has no "
                "effect: updates always exclude "
                "each other."));
}

constexpr Update kUpdates[] = {
    {"GradientDescent", "var", "alpha", "", "", "Gradient descent", "var -= alpha * delta"},
    {"ProximalGradientDescent", "var", "alpha l1 l2", "", "",
     "Gradient descent followed by the proximal step of L1 and L2 regularisation (Duchi, Singer "
     "2009, FOBOS)",
     "p = var - alpha * grad; var = sign(p) / (1 + alpha * l2) * max(|p| - alpha * l1, 0)"},
    {"Momentum", "var accum", "lr", "momentum", "use_nesterov: bool = false",
     "Gradient descent with momentum (Polyak 1964)",
     "accum = accum * momentum + grad; var -= lr * accum\n"
     "use_nesterov (Nesterov 1983): var -= lr * grad + lr * momentum * accum"},
    {"Adagrad", "var accum", "lr", "", "update_slots: bool = true",
     "Adagrad (Duchi, Hazan, Singer 2011)",
     "accum += grad^2 (when update_slots); var -= lr * grad / sqrt(accum)"},
    {"ProximalAdagrad", "var accum", "lr l1 l2", "", "",
     "Adagrad with the proximal step of L1 and L2 regularisation",
     "accum += grad^2; a = lr / sqrt(accum); p = var - a * grad; var = sign(p) / (1 + a * l2) * "
     "max(|p| - a * l1, 0)"},
    {"Adadelta", "var accum accum_update", "lr rho epsilon", "", "", "Adadelta (Zeiler 2012)",
     "accum = rho * accum + (1 - rho) * grad^2; u = sqrt(accum_update + epsilon) / sqrt(accum + "
     "epsilon) * grad; "
     "accum_update = rho * accum_update + (1 - rho) * u^2; var -= lr * u"},
    {"Adam", "var m v", "beta1_power beta2_power lr beta1 beta2 epsilon", "",
     "use_nesterov: bool = false", "Adam (Kingma, Ba 2015)",
     "a = lr * sqrt(1 - beta2_power) / (1 - beta1_power); m += (grad - m) * (1 - beta1); v += "
     "(grad^2 - v) * (1 - beta2); "
     "var -= a * m / (sqrt(v) + epsilon)\nuse_nesterov (Dozat 2016): m * beta1 + (1 - beta1) * "
     "grad stands for m in the last step"},
    {"AdaMax", "var m v", "beta1_power lr beta1 beta2 epsilon", "", "",
     "AdaMax, Adam on the infinity norm (Kingma, Ba 2015)",
     "m += (grad - m) * (1 - beta1); v = max(beta2 * v, |grad|); var -= lr / (1 - beta1_power) * m "
     "/ (v + epsilon)"},
    {"RMSProp", "var ms mom", "lr rho momentum epsilon", "", "", "RMSProp (Tieleman, Hinton 2012)",
     "ms += (grad^2 - ms) * (1 - rho); mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var "
     "-= mom"},
    {"CenteredRMSProp", "var mg ms mom", "lr rho momentum epsilon", "", "",
     "RMSProp by estimated variance (Graves 2013)",
     "ms += (grad^2 - ms) * (1 - rho); mg += (grad - mg) * (1 - rho); "
     "mom = momentum * mom + lr * grad / sqrt(ms - mg^2 + epsilon); var -= mom"},
    {"Ftrl", "var accum linear", "", "lr l1 l2 l2_shrinkage lr_power", "",
     "FTRL-proximal (McMahan et al. 2013)",
     "new = accum + grad^2; linear += grad + 2 * l2_shrinkage * var - (new^-lr_power - "
     "accum^-lr_power) / lr * var; "
     "q = new^-lr_power / lr + 2 * l2; var = (sign(linear) * l1 - linear) / q if |linear| > l1 "
     "else 0; accum = new"},
};

void declare_sparse_adam(OpRegistry& r) {
  OpDeclaration op = r.op("ResourceSparseApplyAdam", HostAccess::kNone);
  add_inputs(op, "var m v", "resource", true);
  add_inputs(op, "beta1_power beta2_power lr beta1 beta2 epsilon grad", "T", false);
  op.input("indices: Tindices")
      .attr("T: {bfloat16, half, float, double}")
      .attr("Tindices: {int32, int64}")
      .attr("use_locking: bool = false")
      .stateful()
      .shape(update_shape)
      .not_differentiable()
      .doc(
          "Adam for a gradient that is zero outside some rows (Kingma, Ba 2015).\n\n"
          "The same step as with that gradient made dense, without making it so: m and v decay in "
          "every row, and every row of "
          "var moves.\nm = m * beta1, v = v * beta2; in rows indices[i]: m += (1 - beta1) * "
          "grad[i], v += (1 - beta2) * grad[i]^2; "
          "var -= lr * sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon)\n"
          "Sum repeated indices first: their squares are added here one by one.\n"
          "Errors: InvalidArgument for an index outside var, which is then unchanged; "
          "FailedPrecondition when var or a slot is "
          "uninitialised. use_locking has no effect: updates always exclude each other.");
}

}  // namespace

void register_training_ops(OpRegistry& r) {
  for (const Update& update : kUpdates) {
    const std::string_view name = update.name;
    declare(r, update, false);
    // Rows of plain descent: ResourceScatterSub. Adam moves all rows. AdaMax has no sparse form in
    // TensorFlow 1.
    if (name != "GradientDescent" && name != "Adam" && name != "AdaMax") declare(r, update, true);
  }
  declare_sparse_adam(r);
  r.finish("training");
}

}  // namespace treenail
