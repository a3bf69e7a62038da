// SPDX-License-Identifier: Apache-2.0
// Placements that are asked for, not run, and profiles for them: treenail.placement. Numbers come
// checked from there.
#include "python/binding/placement.h"

#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "framework/runtime/plan/predicted_placement.h"
#include "python/binding/gil.h"
#include "python/binding/graph_type.h"
#include "python/binding/module.h"
#include "python/binding/operation_type.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

template <class F>
void each_item(PyObject* sequence, F&& f) {
  const Ref items = checked(PySequence_Tuple(sequence));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
    f(PyTuple_GET_ITEM(items.get(), i));
}

template <class... Places>
void parse(PyObject* tuple, const char* format, Places*... places) {
  if (!PyArg_ParseTuple(tuple, format, places...)) throw PythonError();
}

ClusterFigures figures_from(PyObject* object) {
  char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(object, &bytes, &size) < 0) throw PythonError();
  return ClusterFigures::from_bytes({bytes, static_cast<size_t>(size)});
}

DeviceModel device_from(PyObject* tuple) {
  const char *name = nullptr, *host = nullptr;
  long long memory = 0;
  int slots = 1;
  DeviceModel model;
  parse(tuple, "sdddiLds", &name, &model.speed.flops_per_second, &model.speed.bytes_per_second,
        &model.speed.seconds_per_node, &slots, &memory, &model.slowdown, &host);
  model.devices = parse_device_name(name);
  model.host = host;
  model.slots = slots;
  model.memory_bytes = memory;
  return model;
}

LinkModel link_from(PyObject* tuple) {
  const char *from = nullptr, *to = nullptr;
  int sharing = 0;
  LinkModel model;
  parse(tuple, "ssddi", &from, &to, &model.latency, &model.bytes_per_second, &sharing);
  model.from = parse_device_name(from);
  model.to = parse_device_name(to);
  model.sharing = static_cast<PlacementProblem::Sharing>(sharing);
  return model;
}

std::vector<Output> outputs_from(PyObject* sequence, GraphObject* graph) {
  std::vector<Output> outputs;
  each_item(sequence, [&](PyObject* item) { outputs.push_back(output_from(item, graph)); });
  return outputs;
}

// A list of numbers or of None for what is negative.
template <class T>
Ref number_list(const std::vector<T>& numbers) {
  Ref list = checked(PyList_New(static_cast<Py_ssize_t>(numbers.size())));
  for (size_t i = 0; i < numbers.size(); ++i) {
    PyObject* item = nullptr;
    if constexpr (std::is_floating_point_v<T>) {
      item = PyFloat_FromDouble(numbers[i]);
    } else {
      item = PyLong_FromLongLong(static_cast<long long>(numbers[i]));
    }
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), checked(item).release());
  }
  return list;
}

void set(const Ref& dict, const char* key, const Ref& value) {
  if (PyDict_SetItemString(dict.get(), key, value.get()) < 0) throw PythonError();
}

// One tuple per task: (name, op, device, devices or None for all, start, finish, reason, measured).
Ref node_list(const CostPlacement& found) {
  Ref list = checked(PyList_New(0));
  for (size_t t = 0; t < found.nodes.size(); ++t) {
    const Node& node = *found.nodes[t];
    const auto& unit =
        found.problem.units[static_cast<size_t>(found.problem.tasks[t].unit)].devices;
    const Ref devices = unit.empty() ? Ref::borrow(Py_None) : number_list(unit);
    const Ref item = checked(Py_BuildValue(
        "(ssiOddsi)", node.original_name().c_str(), node.type().c_str(), found.choice.places[t],
        devices.get(), found.choice.timeline.start[t], found.choice.timeline.finish[t],
        to_text(found.reasons[t]).c_str(), found.measured[t] ? 1 : 0));
    checked(PyList_Append(list.get(), item.get()));
  }
  return list;
}

// (name of the producer, bytes, from device, to device, start, finish): of memories the first
// device.
Ref transfer_list(const CostPlacement& found) {
  const PlacementProblem& p = found.problem;
  std::vector<int> first(p.capacities.size(), -1);
  for (size_t d = p.devices.size(); d-- > 0;)
    first[static_cast<size_t>(p.devices[d].memory)] = static_cast<int>(d);
  Ref list = checked(PyList_New(0));
  for (const PlacementTimeline::Transfer& each : found.choice.timeline.transfers) {
    const PlacementProblem::Value& value = p.values[static_cast<size_t>(each.value)];
    const Ref item = checked(Py_BuildValue(
        "(sLiidd)", found.nodes[static_cast<size_t>(value.producer)]->original_name().c_str(),
        static_cast<long long>(value.bytes), first[static_cast<size_t>(each.from)],
        first[static_cast<size_t>(each.to)], each.start, each.finish));
    checked(PyList_Append(list.get(), item.get()));
  }
  return list;
}

Ref candidate_list(const PlacementChoice& choice) {
  Ref list = checked(PyList_New(0));
  for (const PlacementCandidate& each : choice.candidates) {
    const Ref item =
        checked(Py_BuildValue("(sdi)", each.strategy.c_str(), each.makespan, each.fits ? 1 : 0));
    checked(PyList_Append(list.get(), item.get()));
  }
  return list;
}

Ref described(const CostPlacement& found) {
  Ref dict = checked(PyDict_New());
  set(dict, "nodes", node_list(found));
  set(dict, "transfers", transfer_list(found));
  set(dict, "candidates", candidate_list(found.choice));
  set(dict, "chosen", checked(PyLong_FromSize_t(found.choice.chosen)));
  set(dict, "makespan", checked(PyFloat_FromDouble(found.choice.timeline.makespan)));
  set(dict, "busy", number_list(found.choice.timeline.busy));
  std::vector<int64_t> peaks, memories;
  for (const PlacementProblem::Device& device : found.problem.devices) {
    peaks.push_back(found.choice.timeline.peak_bytes[static_cast<size_t>(device.memory)]);
    memories.push_back(device.memory);
  }
  set(dict, "peak_bytes", number_list(peaks));
  set(dict, "memories", number_list(memories));
  return dict;
}

// predict_placement(graph, feeds, fetches, targets, [device name], soft, model) -> a dict
PyObject* predict(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded(
      [&] {
        if (nargs != 7) throw_type_error("predict_placement() takes seven arguments");
        GraphObject* const graph = graph_from(args[0]);
        const std::vector<Output> feeds = outputs_from(args[1], graph);
        const std::vector<Output> fetches = outputs_from(args[2], graph);
        std::vector<Node*> targets;
        each_item(args[3], [&](PyObject* item) { targets.push_back(node_from(item, graph)); });
        std::vector<DeviceName> devices;
        each_item(args[4], [&](PyObject* item) {
          devices.push_back(parse_device_name(text_of(item, "a device")));
        });
        const bool soft = checked(PyObject_IsTrue(args[5])) == 1;
        const std::shared_ptr<const CostModel> model = cost_model_from(args[6]);
        const std::shared_ptr<Graph> source = graph->state->graph;
        PredictedPlacement found;
        {
          const GilRelease release;
          const std::shared_lock<ForkSharedMutex> lock(source->mutex());
          found = predict_placement(*source, feeds, fetches, targets, devices, soft, *model);
        }
        return described(found.placement).release();
      },
      args[0]);
}

// placement_profile(text or None, [(kind, name, (fused name, ...), ns)], runs,
//                   [(device, flops per second, bytes per second, ns per node)],
//                   [(from task, to task, ns, bytes per second)],
//                   [(device, host, thousandths)]) -> text
PyObject* profile(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 6) throw_type_error("placement_profile() takes six arguments");
    PlacementProfile profile;
    if (args[0] != Py_None) profile = PlacementProfile::from_text(text_of(args[0], "a profile"));
    each_item(args[1], [&](PyObject* item) {
      const char *kind = nullptr, *name = nullptr;
      PyObject* fused = nullptr;
      long long ns = 0;
      parse(item, "ssOL", &kind, &name, &fused, &ns);
      std::vector<std::string> names;
      each_item(fused, [&](PyObject* each) { names.emplace_back(text_of(each, "a name")); });
      profile.add(kind, name, names, ns);
    });
    each_item(args[3], [&](PyObject* item) {
      const char* name = nullptr;
      long long flops = 0, bytes = 0, ns = 0;
      parse(item, "sLLL", &name, &flops, &bytes, &ns);
      profile.set_device(name, {flops, bytes, ns});
    });
    each_item(args[4], [&](PyObject* item) {
      const char *from = nullptr, *to = nullptr;
      long long ns = 0, bytes = 0;
      parse(item, "ssLL", &from, &to, &ns, &bytes);
      profile.set_link({from, to}, {ns, bytes});
    });
    each_item(args[5], [&](PyObject* item) {
      const char *name = nullptr, *host = nullptr;
      long long thousandths = 0;
      parse(item, "ssL", &name, &host, &thousandths);
      profile.set_contention(name, {host, thousandths});
    });
    for (long runs = checked(PyLong_AsLong(args[2])); runs > 0; --runs) profile.end_run();
    return text_object(profile.to_text()).release();
  });
}

// {name: (flops per second, bytes per second, ns per node)}
Ref device_figures(const PlacementProfile& profile) {
  Ref dict = checked(PyDict_New());
  for (const auto& [name, each] : profile.devices()) {
    set(dict, name.c_str(),
        checked(Py_BuildValue("(LLL)", static_cast<long long>(each.flops_per_second),
                              static_cast<long long>(each.bytes_per_second),
                              static_cast<long long>(each.ns_per_node))));
  }
  return dict;
}

// {(from, to): (ns, bytes per second)}
Ref link_figures(const PlacementProfile& profile) {
  Ref dict = checked(PyDict_New());
  for (const auto& [link, each] : profile.links()) {
    const Ref key = checked(Py_BuildValue("(ss)", link.first.c_str(), link.second.c_str()));
    const Ref value = checked(Py_BuildValue("(LL)", static_cast<long long>(each.latency_ns),
                                            static_cast<long long>(each.bytes_per_second)));
    if (PyDict_SetItem(dict.get(), key.get(), value.get()) < 0) throw PythonError();
  }
  return dict;
}

// {name: (host, thousandths)}
Ref contention_figures(const PlacementProfile& profile) {
  Ref dict = checked(PyDict_New());
  for (const auto& [name, each] : profile.contention()) {
    set(dict, name.c_str(),
        checked(
            Py_BuildValue("(sL)", each.host.c_str(), static_cast<long long>(each.thousandths))));
  }
  return dict;
}

// placement_profile_entries(text) -> (runs, [(kind, name, (fused name, ...), count, total ns)],
//                                     device_figures(), link_figures(), contention_figures())
PyObject* profile_entries(PyObject*, PyObject* text) {
  return guarded([&] {
    const PlacementProfile profile = PlacementProfile::from_text(text_of(text, "a profile"));
    Ref list = checked(PyList_New(0));
    for (const PlacementProfile::Entry& entry : profile.entries()) {
      Ref fused = checked(PyTuple_New(static_cast<Py_ssize_t>(entry.fused.size())));
      for (size_t i = 0; i < entry.fused.size(); ++i)
        PyTuple_SET_ITEM(fused.get(), static_cast<Py_ssize_t>(i),
                         text_object(entry.fused[i]).release());
      const Ref item = checked(Py_BuildValue("(ssOLL)", entry.kind.c_str(), entry.name.c_str(),
                                             fused.get(), static_cast<long long>(entry.count),
                                             static_cast<long long>(entry.total_ns)));
      checked(PyList_Append(list.get(), item.get()));
    }
    const Ref devices = device_figures(profile), links = link_figures(profile),
              contention = contention_figures(profile);
    return checked(Py_BuildValue("(LOOOO)", static_cast<long long>(profile.runs()), list.get(),
                                 devices.get(), links.get(), contention.get()))
        .release();
  });
}

// load_placement_profile(path) -> text
PyObject* load_profile(PyObject*, PyObject* path) {
  return guarded([&] {
    const std::string name(text_of(path, "a path"));
    std::string text;
    {
      const GilRelease release;
      text = PlacementProfile::load(name).to_text();
    }
    return text_object(text).release();
  });
}

// device_hosts(what tasks tell, [device]) -> [host, or "" where none is told]
PyObject* device_hosts(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2) throw_type_error("device_hosts() takes two arguments");
    const ClusterFigures told = figures_from(args[0]);
    Ref list = checked(PyList_New(0));
    each_item(args[1], [&](PyObject* item) {
      const std::string host = told.host(parse_device_name(text_of(item, "a device")));
      checked(PyList_Append(list.get(), text_object(host).get()));
    });
    return list.release();
  });
}

// device_kind(name) -> "CPU", or "" where the name leaves it open.
PyObject* device_kind(PyObject*, PyObject* name) {
  return guarded(
      [&] { return text_object(parse_device_name(text_of(name, "a device")).type).release(); });
}

// full_device_name(name) -> that with what it leaves out as in this process.
PyObject* full_device_name(PyObject*, PyObject* name) {
  return guarded([&] {
    const DeviceName here{"localhost", 0, 0, Device::kHostKind, 0};
    const DeviceName asked = parse_device_name(text_of(name, "a device"));
    return text_object(to_text(merge_device_names(here, asked))).release();
  });
}

// usual_speed(kind) -> (flops, bytes, seconds per node)
PyObject* usual_speed_of(PyObject*, PyObject* kind) {
  return guarded([&] {
    const DeviceSpeed speed = usual_speed(std::string(text_of(kind, "a kind of device")));
    return checked(Py_BuildValue("(ddd)", speed.flops_per_second, speed.bytes_per_second,
                                 speed.seconds_per_node))
        .release();
  });
}

PyMethodDef functions[] = {
    {"device_kind", device_kind, METH_O, nullptr},
    {"full_device_name", full_device_name, METH_O, nullptr},
    {"usual_speed", usual_speed_of, METH_O, nullptr},
    {"predict_placement", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(predict)),
     METH_FASTCALL, nullptr},
    {"placement_profile", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(profile)),
     METH_FASTCALL, nullptr},
    {"placement_profile_entries", profile_entries, METH_O, nullptr},
    {"load_placement_profile", load_profile, METH_O, nullptr},
    {"device_hosts", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(device_hosts)),
     METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

std::shared_ptr<const CostModel> cost_model_from(PyObject* object) {
  if (object == Py_None) return nullptr;
  PyObject *devices = nullptr, *links = nullptr, *profile = nullptr, *told = Py_None;
  long long unknown = 0;
  auto model = std::make_shared<CostModel>();
  parse(object, "OOOLd|O", &devices, &links, &profile, &unknown, &model->costs.trip_count, &told);
  each_item(devices, [&](PyObject* item) { model->devices.push_back(device_from(item)); });
  each_item(links, [&](PyObject* item) { model->links.push_back(link_from(item)); });
  model->costs.unknown_dimension = unknown;
  if (profile != Py_None) {
    model->costs.profile = std::make_shared<const PlacementProfile>(
        PlacementProfile::from_text(text_of(profile, "a profile")));
  }
  if (told != Py_None) model->told = std::make_shared<const ClusterFigures>(figures_from(told));
  return model;
}

void add_placement(PyObject* module) { add_methods(module, functions); }

}  // namespace treenail::python
