# SPDX-License-Identifier: Apache-2.0
"""Lookup tables: what programs of TensorFlow 1 do with them, and what is refused."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import treenail as tn

WORDS = ["oak", "elm", "ash"]
PS, WORKERS = "/job:ps/task:0", ["/job:worker/task:0", "/job:worker/task:1"]
needs_servers = pytest.mark.skipif("grpc" not in tn.build_info()["features"],
                                   reason="this build has no gRPC")


def vocabulary(words=WORDS):
    return tn.lookup.KeyValueTensorInitializer(words, range(len(words)), tn.string, tn.int64)


def mutable(value_dtype=tn.int64, default=-1, **options):
    return tn.lookup.experimental.MutableHashTable(tn.string, value_dtype, default, **options)


@pytest.fixture
def words_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("".join(word + "\n" for word in WORDS))
    return str(path)


# --- Programs -----------------------------------------------------------------------------------

def test_words_become_rows_of_an_embedding():
    words = tn.placeholder(tn.string, [None, None])
    table = tn.lookup.StaticVocabularyTable(vocabulary(), num_oov_buckets=2)
    ids = table.lookup(words)
    embedding = tn.get_variable("embedding", [5, 4])
    rows = tn.nn.embedding_lookup(embedding, ids)
    assert ids.shape.as_list() == [None, None] and rows.shape.as_list() == [None, None, 4]
    loss = tn.reduce_mean(rows ** 2)
    train = tn.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tn.Session() as session:
        session.run([tn.global_variables_initializer(), tn.tables_initializer()])
        fed = {words: [["oak", "yew"], ["ash", "elm"]]}
        before = session.run(embedding)
        found, got = session.run([ids, rows], fed)
        bucket = session.run(tn.strings.to_hash_bucket_fast(["yew"], 2))[0] + 3
        assert found.tolist() == [[0, bucket], [2, 1]]
        assert (got == before[found]).all()
        first = session.run([loss, train], fed)[0]
        assert session.run(loss, fed) < first
        assert session.run(table.size()) == 5


def test_a_file_gives_numbers_and_back(words_file):
    there = tn.lookup.index_table_from_file(words_file)
    back = tn.lookup.index_to_string_table_from_file(words_file, default_value="?")
    ids = there.lookup(tn.constant(["elm", "fir"]))
    words = back.lookup(tn.constant([2, 0, 7], tn.int64))
    with tn.Session() as session:
        session.run(tn.tables_initializer())
        assert session.run(ids).tolist() == [1, -1]
        assert session.run(words).tolist() == [b"ash", b"oak", b"?"]
    assert len(tn.get_collection(tn.GraphKeys.ASSET_FILEPATHS)) == 2


@pytest.mark.parametrize("buckets", [0, 3])
def test_a_list_gives_numbers_and_back(buckets):
    there = tn.lookup.index_table_from_tensor(WORDS, num_oov_buckets=buckets)
    back = tn.lookup.index_to_string_table_from_tensor(WORDS)
    with tn.Session() as session:
        session.run(tn.tables_initializer())
        ids, words = session.run([there.lookup(["ash", "fir"]),
                                  back.lookup(tn.constant([1, 9], tn.int64))])
    assert ids[0] == 2 and (3 <= ids[1] < 6 if buckets else ids[1] == -1)
    assert words.tolist() == [b"elm", b"UNK"]


def test_a_list_of_integers():
    table = tn.lookup.index_table_from_tensor([30, 10], num_oov_buckets=1, dtype=tn.int64)
    ids = table.lookup(tn.constant([10, 30, 11], tn.int64))
    with tn.Session() as session:
        session.run(table.init)
        assert session.run(ids).tolist() == [1, 0, 2]


def test_integers_that_are_narrower_than_the_vocabulary():
    table = tn.lookup.StaticVocabularyTable(
        tn.lookup.KeyValueTensorInitializer([7, 8], [0, 1], tn.int64, tn.int64), 1, tn.int32)
    ids = table.lookup(tn.constant([8, 9]))
    with tn.Session() as session:
        session.run(table.initializer)
        assert session.run(ids).tolist() == [1, 2]


def test_buckets_alone():
    table = tn.lookup.StaticVocabularyTable(None, 10)
    with tn.Session() as session:
        session.run(tn.tables_initializer())
        ids, wanted, size = session.run([table.lookup(WORDS), tn.strings.to_hash_bucket_fast(
            WORDS, 10), table.size()])
    assert (ids == wanted).all() and size == 10


def test_sparse_words_give_sparse_numbers():
    words = tn.SparseTensor([[0, 1], [2, 0]], ["elm", "fir"], [3, 2])
    table = tn.lookup.StaticHashTable(vocabulary(), -1)
    for found in (table.lookup(words),
                  tn.lookup.StaticVocabularyTable(vocabulary(), 1).lookup(words)):
        with tn.Session() as session:
            session.run(tn.tables_initializer())
            got = session.run(found)
        assert got.values[0] == 1 and got.values[1] in (-1, 3)
        assert got.dense_shape.tolist() == [3, 2] and got.indices.tolist() == [[0, 1], [2, 0]]


def test_a_monitored_session_initialises_tables():
    ids = tn.lookup.StaticHashTable(vocabulary(), -1).lookup(["ash"])
    tn.train.get_or_create_global_step()
    with tn.train.MonitoredTrainingSession() as session:
        assert session.run(ids).tolist() == [2]
    tn.reset_default_graph()
    ids = tn.lookup.StaticHashTable(vocabulary(), -1).lookup(["ash"])
    with tn.train.MonitoredSession(tn.train.ChiefSessionCreator(tn.train.Scaffold())) as session:
        assert session.run(ids).tolist() == [2]


def test_without_tables_nothing_is_initialised():
    with tn.Session() as session:
        assert session.run([tn.tables_initializer(), tn.initialize_all_tables()]) == [None, None]


def test_a_table_in_a_loop_and_a_branch():
    table = tn.lookup.StaticHashTable(vocabulary(), -1)
    words = tn.constant(["ash", "fir", "elm"])
    total = tn.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, s + table.lookup(words[i])),
        [0, tn.constant(0, tn.int64)])[1]
    chosen = tn.cond(total > 0, lambda: table.lookup(words[:1]), lambda: table.lookup(words[1:2]))
    with tn.Session() as session:
        session.run(tn.tables_initializer())
        assert session.run([total, chosen[0]]) == [2, 2]


# --- Static tables ------------------------------------------------------------------------------

def test_reading_before_initialising_says_what_to_run():
    table = tn.lookup.StaticHashTable(vocabulary(), -1, name="trees")
    with tn.Session() as session:
        with pytest.raises(tn.errors.FailedPreconditionError,
                           match='Table not initialized: .*table "trees", or tables_initializer'):
            session.run(table.lookup(WORDS))
        with pytest.raises(tn.errors.FailedPreconditionError, match="Table not initialized"):
            session.run(table.export())
        assert session.run(table.size()) == 0
        session.run(table.initializer)
        assert session.run(table.size()) == 3
        keys, values = session.run(table.export())
        assert keys.tolist() == [b"oak", b"elm", b"ash"] and values.tolist() == [0, 1, 2]


def test_initialising_again():
    words = tn.placeholder(tn.string, [None])
    numbers = tn.range(tn.size(words, out_type=tn.int64))
    table = tn.lookup.StaticHashTable(tn.lookup.KeyValueTensorInitializer(words, numbers), -1)
    with tn.Session() as session:
        for _ in range(2):
            session.run(table.initializer, {words: WORDS})
        for other in (["oak"], ["oak", "ash", "elm"], WORDS + ["fir"]):
            with pytest.raises(tn.errors.FailedPreconditionError,
                               match="already initialized with different data"):
                session.run(table.initializer, {words: other})
        assert session.run(table.lookup(["ash", "fir"])).tolist() == [2, -1]


def test_one_key_with_two_values_leaves_the_table_empty():
    table = tn.lookup.StaticHashTable(
        tn.lookup.KeyValueTensorInitializer(["a", "b", "a"], [1, 2, 3]), 0)
    with tn.Session() as session:
        with pytest.raises(tn.errors.FailedPreconditionError, match="different value for same key"):
            session.run(table.initializer)
        with pytest.raises(tn.errors.FailedPreconditionError, match="not initialized"):
            session.run(table.lookup(["b"]))


def test_each_session_has_its_own():
    table = tn.lookup.StaticHashTable(vocabulary(), -1)
    ids = table.lookup(["elm"])
    with tn.Session() as one, tn.Session() as two:
        one.run(table.initializer)
        assert one.run(ids).tolist() == [1]
        with pytest.raises(tn.errors.FailedPreconditionError, match="not initialized"):
            two.run(ids)


VALUES = {tn.int32: [1, 2], tn.int64: [1, 2], tn.float32: [0.5, 2], tn.float64: [0.5, 2],
          tn.bool: [True, False], tn.string: ["x", "y"]}


@pytest.mark.parametrize("key_dtype", [tn.int32, tn.int64, tn.string], ids=lambda d: d.name)
@pytest.mark.parametrize("value_dtype", VALUES, ids=lambda d: d.name)
def test_every_dtype(key_dtype, value_dtype):
    keys = ["a", ""] if key_dtype == tn.string else [5, -5]
    values = VALUES[value_dtype]
    static = tn.lookup.StaticHashTable(tn.lookup.KeyValueTensorInitializer(
        keys, values, key_dtype, value_dtype), values[0])
    changing = tn.lookup.experimental.MutableHashTable(key_dtype, value_dtype, values[0])
    asked = tn.constant(list(reversed(keys)) + (["b"] if key_dtype == tn.string else [0]),
                        key_dtype)
    wanted = np.array([values[1], values[0], values[0]], value_dtype.as_numpy_dtype)
    with tn.Session() as session:
        session.run([static.initializer, changing.insert(keys, values)])
        for table in (static, changing):
            got = session.run(table.lookup(asked))
            assert [v.decode() if isinstance(v, bytes) else v for v in got.tolist()] \
                == wanted.tolist()


# --- Files --------------------------------------------------------------------------------------

def from_file(path, key, value, key_dtype=tn.string, value_dtype=tn.int64, default=-1, **options):
    return tn.lookup.StaticHashTable(tn.lookup.TextFileInitializer(
        path, key_dtype, key, value_dtype, value, **options), default)


def test_columns_of_a_file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"10,oak,0.5\r\n20,elm,-inf\r\n+30,ash,1e3")
    prices = from_file(path, 1, 2, value_dtype=tn.float32, default=0, delimiter=",")
    codes = from_file(path, 0, 1, tn.int32, tn.string, "?", delimiter=",")
    lines = from_file(path, tn.lookup.TextFileIndex.LINE_NUMBER,
                      tn.lookup.TextFileIndex.WHOLE_LINE, tn.int64, tn.string, "?", vocab_size=2)
    with tn.Session() as session:
        session.run(tn.tables_initializer())
        assert session.run(prices.lookup(WORDS)).tolist() == [0.5, -np.inf, 1000]
        assert session.run(codes.lookup(tn.constant([30, 31]))).tolist() == [b"ash", b"?"]
        assert session.run(lines.lookup(tn.constant([1, 2], tn.int64))).tolist() == [
            b"20,elm,-inf", b"?"]


def test_files_of_one_name_are_one_table(words_file):
    one, two = (from_file(words_file, -2, -1) for _ in range(2))
    numbers = from_file(words_file, -2, -1, vocab_size=2)
    with tn.Session() as session:
        session.run(one.initializer)
        assert session.run(two.lookup(["ash"])).tolist() == [2]
        with pytest.raises(tn.errors.FailedPreconditionError, match="not initialized"):
            session.run(numbers.lookup(["ash"]))


@pytest.mark.parametrize("text, options, message", [
    ("a\n\nb\n", {}, "words.txt: line 1 is empty"),
    ("a\nb\n", {"vocab_size": 3}, "Invalid vocab_size .*: expected 3 lines, the file has 2"),
    ("a\t1\nb\n", {"key": 0, "value": 1},
     r'Invalid number of columns in .* line 1 \("b"\): expected at least 2, got 1'),
    ("a\tone\n", {"key": 0, "value": 1}, 'Field "one" in line 0 of .* is not a valid int64'),
    ("a\t99999999999999999999\n", {"key": 0, "value": 1}, "is not a valid int64"),
])
def test_a_file_that_is_no_table(tmp_path, text, options, message):
    path = tmp_path / "words.txt"
    path.write_text(text)
    options = {"key": -2, "value": -1, **options}
    table = from_file(path, options.pop("key"), options.pop("value"), **options)
    with tn.Session() as session:
        with pytest.raises(tn.errors.InvalidArgumentError, match=message):
            session.run(table.initializer)


def test_random_files_never_crash(tmp_path, rng):
    path = tmp_path / "any"
    table = from_file(str(path), 0, 1, tn.int64, tn.float32, 0.0, delimiter=";")
    with tn.Session() as session:
        for _ in range(200):
            path.write_bytes(bytes(rng.choice(list(b"01;-e.\n\r\x00\xff"), rng.randint(60))))
            try:
                session.run(table.initializer)
            except (tn.errors.InvalidArgumentError, tn.errors.FailedPreconditionError):
                pass


def test_a_file_that_is_not_there(tmp_path):
    with tn.Session() as session, pytest.raises(tn.errors.NotFoundError, match="no_such"):
        session.run(from_file(tmp_path / "no_such", -2, -1).initializer)


@pytest.mark.parametrize("arguments, message", [
    (("f", tn.string, -1, tn.int64, -1), "Keys must be dtype int64, got string"),
    (("f", tn.float32, -2, tn.int64, -1), "Keys must be integer or string, got float32"),
    (("f", tn.string, -2, tn.int32, -1), "Values must be dtype int64, got int32"),
    (("f", tn.string, -3, tn.int64, -1), "Invalid key index -3"),
    (("f", tn.string, -2, tn.int64, -1, 0), "Invalid vocab_size 0"),
    (("", tn.string, -2, tn.int64, -1), "Filename required"),
])
def test_initializers_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        tn.lookup.TextFileInitializer(*arguments)


# --- Tables that change -------------------------------------------------------------------------

def test_a_table_that_grows_and_shrinks():
    table = mutable()
    words, numbers = tn.placeholder(tn.string), tn.placeholder(tn.int64)
    insert, remove, found = table.insert(words, numbers), table.remove(words), table.lookup(words)
    model = {}
    rng = np.random.RandomState(1)
    with tn.Session() as session:
        for _ in range(60):
            keys = ["w%d" % i for i in rng.randint(0, 400, 30)]
            if rng.rand() < 0.6:
                values = rng.randint(0, 1000, 30)
                session.run(insert, {words: keys, numbers: values})
                model.update(zip(keys, values))
            else:
                session.run(remove, {words: keys})
                for key in keys:
                    model.pop(key, None)
            asked = ["w%d" % i for i in range(400)]
            assert session.run(found, {words: asked}).tolist() == [model.get(k, -1) for k in asked]
        keys, values = session.run(table.export())
        assert {k.decode(): v for k, v in zip(keys, values)} == model
        assert session.run(table.size()) == len(model)


def test_values_may_be_tensors():
    table = mutable(tn.float32, [0.0, 0.0, 0.0])
    rows = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    found = table.lookup([["a", "x", "d"]])
    assert found.shape.as_list() == [1, 3, 3]
    with tn.Session() as session:
        session.run(table.insert([["a", "b"], ["c", "d"]], rows))
        assert session.run(found).tolist() == [[[0, 1, 2], [0, 0, 0], [9, 10, 11]]]


def test_raw_import_replaces_everything():
    table = mutable()
    imported = tn.raw_ops.LookupTableImportV2(table.resource_handle, ["b"],
                                              tn.constant([7], tn.int64))
    with tn.Session() as session:
        session.run(table.insert(["a"], [1]))
        session.run(imported)
        assert session.run(table.lookup(["a", "b"])).tolist() == [-1, 7]


def test_many_runs_at_once():
    table = mutable()
    words, numbers = tn.placeholder(tn.string, [None]), tn.placeholder(tn.int64, [None])
    insert, found = table.insert(words, numbers), table.lookup(words)
    failed = []

    def work(session, of):
        keys = ["%d of %d" % (i, of) for i in range(50)]
        for step in range(20):
            session.run(insert, {words: keys, numbers: [step] * 50})
            if set(session.run(found, {words: keys})) != {step}:
                failed.append((of, step))
    with tn.Session() as session:
        threads = [threading.Thread(target=work, args=(session, i)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert session.run(table.size()) == 200


@pytest.mark.parametrize("call, error, message", [
    (lambda: mutable().lookup(tn.constant([1])), TypeError, "Keys must be dtype string, got int32"),
    (lambda: mutable().insert(["a"], ["b"]), TypeError, "int64"),
    (lambda: mutable().insert(["a", "b"], [1]), ValueError, "keys"),
    (lambda: mutable(checkpoint=True), NotImplementedError, "export"),
    (lambda: tn.lookup.StaticHashTable(vocabulary(), "none"), TypeError, "int64"),
    (lambda: tn.lookup.StaticHashTable(vocabulary(), [1, 2]), ValueError, "compatible"),
    (lambda: tn.lookup.StaticHashTable(["a"], 0), TypeError, "initializer must be"),
    (lambda: tn.lookup.StaticVocabularyTable(vocabulary(), 0), ValueError, "must be > 0"),
    (lambda: tn.lookup.StaticVocabularyTable(vocabulary(), 1, tn.int64), TypeError,
     "Invalid key dtype, expected non-integer but got int64"),
    (lambda: tn.lookup.StaticVocabularyTable(
        tn.lookup.KeyValueTensorInitializer(["a"], [1]), 1), TypeError,
     "Invalid value dtype, expected int64 but got int32"),
    (lambda: tn.lookup.index_table_from_tensor(WORDS, -1), ValueError, "num_oov_buckets"),
    (lambda: tn.lookup.HashTable, AttributeError, "use tn.lookup.StaticHashTable"),
    (lambda: tn.lookup.experimental.DenseHashTable, AttributeError, "MutableHashTable"),
])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_handle_of_another_kind():
    queue = tn.FIFOQueue(1, tn.int32)
    found = tn.raw_ops.LookupTableFindV2(queue.queue_ref, ["a"], 0)
    size = tn.raw_ops.QueueSizeV2(mutable().resource_handle)
    with tn.Session() as session:
        for wrong, message in ((found, "FIFOQueue; a lookup table's handle is needed"),
                               (size, "MutableHashTable; a queue's handle")):
            with pytest.raises(tn.errors.InvalidArgumentError, match=message):
                session.run(wrong)


def test_tables_of_one_name_must_be_alike():
    one, two = mutable(shared_name="t"), mutable(tn.string, "", shared_name="t")
    with tn.Session() as session:
        session.run(one.insert(["a"], [1]))
        with pytest.raises(tn.errors.InvalidArgumentError, match='table "t" is a MutableHashTable'):
            session.run(two.size())


def test_containers_tell_tables_apart():
    with tn.container("c"):
        one = mutable(shared_name="t")
    two = mutable(shared_name="t")
    with tn.Session() as session:
        session.run(one.insert(["a"], [1]))
        assert session.run([one.size(), two.size()]) == [1, 0]


# --- Servers ------------------------------------------------------------------------------------

@needs_servers
def test_a_table_at_a_parameter_server_is_shared_by_workers(cluster):
    words, numbers = tn.placeholder(tn.string, [None]), tn.placeholder(tn.int64, [None])
    with tn.device(PS):
        known = tn.lookup.StaticHashTable(vocabulary(), -1, name="known")
        counts = mutable(default=0, shared_name="counts")
    found, insert, count = known.lookup(words), counts.insert(words, numbers), counts.lookup(words)
    with tn.device(WORKERS[1]):
        twice = found * 2 + count
    with tn.Session(cluster.target("worker", 0)) as one, \
            tn.Session(cluster.target("worker", 1)) as two:
        with pytest.raises(tn.errors.FailedPreconditionError, match='table "known"'):
            two.run(twice, {words: ["ash"]})
        one.run(tn.tables_initializer())
        two.run(tn.tables_initializer())  # as every worker does
        one.run(insert, {words: ["ash", "fir"], numbers: [100, 200]})
        assert two.run(twice, {words: ["ash", "fir", "elm"]}).tolist() == [104, 198, 2]
    tn.Session.reset(cluster.target("worker"))
    with tn.Session(cluster.target("worker")) as again:
        assert again.run(counts.size()) == 0


@needs_servers
def test_replica_device_setter_shares_tables_that_change(cluster):
    with tn.device(tn.train.replica_device_setter(
            cluster=tn.train.ClusterSpec(cluster.spec), worker_device=WORKERS[0])):
        static = tn.lookup.StaticHashTable(vocabulary(), -1)
        table = mutable()
        ids, found = static.lookup(["ash"]), table.lookup(["a"])
    assert table.resource_handle.device.startswith("/job:ps")
    assert static.resource_handle.device.startswith("/job:worker")
    with tn.Session(cluster.target("worker")) as session:
        session.run([tn.tables_initializer(), table.insert(["a"], [5])])
        assert session.run([ids, found]) == [[2], [5]]


@needs_servers
def test_files_of_a_server_lie_where_it_allows(cluster, words_file):
    with tn.device(PS):
        inside, outside = from_file(words_file, -2, -1), from_file("/etc/hostname", -2, -1)
    with tn.Session(cluster.target("worker")) as session:
        session.run(inside.initializer)
        assert session.run(inside.lookup(["ash"])).tolist() == [2]
        with pytest.raises(tn.errors.PermissionDeniedError, match="is not below"):
            session.run(outside.initializer)


# --- Immediate execution ------------------------------------------------------------------------

IMMEDIATE = """
import sys
import treenail as tn
tn.enable_eager_execution()
words = tn.lookup.KeyValueTensorInitializer(["oak", "elm"], [0, 1], value_dtype=tn.int64)
table = tn.lookup.StaticVocabularyTable(words, 3)
assert table.lookup(["elm", "oak"]).numpy().tolist() == [1, 0]
assert int(table.size()) == 5 and table.initializer is None
other = tn.lookup.StaticHashTable(tn.lookup.KeyValueTensorInitializer(["oak"], [7]), -1)
assert other.lookup("oak").numpy() == 7  # a table of its own
lines = [tn.lookup.index_table_from_file(sys.argv[1]) for _ in range(2)]
assert lines[1].lookup(["ash"]).numpy().tolist() == [2]

changing = tn.lookup.experimental.MutableHashTable(tn.string, tn.float32, 0.0)
changing.insert(["a"], [2.5])

@tn.function
def doubled(keys):
    return changing.lookup(keys) * 2

assert doubled(tn.constant(["a", "b"])).numpy().tolist() == [5, 0]
changing.remove(["a"])
assert doubled(tn.constant(["a", "b"])).numpy().tolist() == [0, 0]
"""


def test_with_immediate_execution(words_file):
    subprocess.run([sys.executable, "-c", IMMEDIATE, words_file], check=True)
