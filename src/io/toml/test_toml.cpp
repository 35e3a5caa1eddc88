#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "io/test_support.h"
#include "io/toml/toml.h"

namespace heddle::io {
namespace {

const char* const kRecipe = R"(# a comment
[model]
kind = "decoder"
layers = 6
dropout = 0.1
tied = true
sizes = [1, 2, 3]

[model.attention]
heads = 6
look_back = 128

[data]
text = "books/one.txt"
splits = ["train", "test"]
mix = [0.5, 1]
)";

TomlDocument recipe() { return TomlDocument::parse(kRecipe, "r.toml"); }

void ask_for_everything(const TomlDocument& document) {
  const TomlTable model = document.root().table("model");
  EXPECT_EQ(model.choice("kind", {"decoder", "encoder"}), "decoder");
  (void)model.integer("layers", {1, 100});
  (void)model.number("dropout", {0, 1});
  (void)model.boolean("tied");
  (void)model.integers("sizes");
  const TomlTable attention = model.table("attention");
  (void)attention.integer("heads");
  (void)attention.integer_or("kv_heads", 6);
  (void)attention.integer_or("look_back", 0);
  const TomlTable data = document.root().table("data");
  (void)data.string("text");
  (void)data.strings("splits");
  (void)data.numbers("mix");
}

TEST(Toml, GettersReadWhatIsThere) {
  const TomlDocument document = recipe();
  const TomlTable model = document.root().table("model");
  EXPECT_EQ(model.string("kind"), "decoder");
  EXPECT_EQ(model.choice("kind", {"encoder", "decoder"}), "decoder");
  EXPECT_EQ(model.integer("layers"), 6);
  EXPECT_EQ(model.number("layers"), 6.0);
  EXPECT_EQ(model.number("dropout"), 0.1);
  EXPECT_TRUE(model.boolean("tied"));
  EXPECT_EQ(model.integers("sizes"), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(model.table("attention").integer("heads"), 6);
  EXPECT_EQ(model.table("attention").path(), "model.attention");
  EXPECT_EQ(model.keys(),
            (std::vector<std::string>{"kind", "layers", "dropout", "tied", "sizes", "attention"}));
  const TomlTable data = document.root().table("data");
  EXPECT_EQ(data.strings("splits"), (std::vector<std::string>{"train", "test"}));
  EXPECT_EQ(data.numbers("mix"), (std::vector<double>{0.5, 1}));
  EXPECT_EQ(TomlDocument::parse("a = [true, false]", "f").root().booleans("a"),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(model.where("layers"), "r.toml:4");
  EXPECT_EQ(model.where("nothing"), "r.toml");
}

TEST(Toml, FallbacksStandInForWhatIsMissing) {
  const TomlDocument document = recipe();
  const TomlTable train = document.root().table("train");
  EXPECT_FALSE(train.exists());
  EXPECT_FALSE(train.has("steps"));
  EXPECT_EQ(train.integer_or("steps", 100), 100);
  EXPECT_EQ(train.number_or("lr", 0.5), 0.5);
  EXPECT_EQ(train.string_or("name", "x"), "x");
  EXPECT_EQ(train.choice_or("precision", "bf16", {"bf16", "fp32"}), "bf16");
  EXPECT_TRUE(train.boolean_or("shuffle", true));
  EXPECT_TRUE(train.table("deeper").keys().empty());
  EXPECT_EQ(document.root().table("model").integer_or("layers", 1), 6);
}

TEST(Toml, ErrorsNameLineKeyExpectedAndGot) {
  const TomlDocument document = recipe();
  const TomlTable model = document.root().table("model");
  expect_refusal([&] { (void)model.integer("kind"); },
                 {"r.toml:3: key model.kind; expected an integer; got the string \"decoder\""});
  expect_refusal([&] { (void)model.integer("dropout"); }, {"r.toml:5", "an integer", "got 0.1"});
  expect_refusal([&] { (void)model.integer("layers", {1, 5}); },
                 {"r.toml:4: key model.layers; expected an integer from 1 to 5; got 6"});
  expect_refusal([&] { (void)model.integer_or("layers", 1, {7}); }, {"at least 7"});
  expect_refusal([&] { (void)model.number("dropout", {0.5, 1}); }, {"from 0.5 to 1", "got 0.1"});
  expect_refusal([&] { (void)model.number("tied"); }, {"r.toml:6", "a number", "got true"});
  expect_refusal([&] { (void)model.boolean("layers"); }, {"true or false", "got 6"});
  expect_refusal([&] { (void)model.string("sizes"); }, {"a string", "the array [1, 2, 3]"});
  expect_refusal([&] { (void)model.string("attention"); }, {"a string", "the table { heads"});
  expect_refusal([&] { (void)model.table("layers"); }, {"r.toml:4", "a table", "got 6"});
  expect_refusal([&] { (void)model.integers("layers"); }, {"an array"});
  expect_refusal([&] { (void)model.integers("sizes", {1, 2}); }, {"model.sizes[2]", "got 3"});
  expect_refusal([&] { (void)document.root().table("data").integers("mix"); },
                 {"r.toml:16: key data.mix[0]", "got 0.5"});
  expect_refusal([&] { (void)model.choice("kind", {"rnn", "vit"}); },
                 {"one of rnn, vit", "\"decoder\""});
  expect_refusal([&] { model.refuse("layers", "an even number"); },
                 {"r.toml:4: key model.layers; expected an even number; got 6"});
  expect_refusal([] { (void)TomlDocument::parse("a = nan", "f").root().number("a"); }, {"got nan"});
  expect_refusal([] { (void)TomlDocument::parse("a = 2020-01-02", "f").root().string("a"); },
                 {"the date 2020-01-02"});
}

TEST(Toml, MissingKeysPointAtSlips) {
  const TomlDocument document = TomlDocument::parse("[model]\nlayesr = 3\n", "r.toml");
  expect_refusal([&] { (void)document.root().table("model").integer("layers", {1, 9}); },
                 {"r.toml:1: key model.layers is missing", "an integer from 1 to 9",
                  "the key layesr at r.toml:2"});
  expect_refusal([&] { (void)document.root().table("model").strings("zzz"); },
                 {"model.zzz is missing; expected an array"});
  expect_refusal([&] { (void)document.root().table("none").string("x"); },
                 {"r.toml: key none.x is missing"});
  const TomlDocument other = TomlDocument::parse("[model]\n[training]\nsteps = 3\n", "r.toml");
  (void)other.root().table("model");
  expect_refusal([&] { (void)other.root().table("train").integer("steps"); },
                 {"r.toml: key train.steps is missing", "got the table training at r.toml:2"});
  expect_refusal([&] { (void)other.root().table("trainign").integer("steps"); },
                 {"got the table training at r.toml:2"});
  expect_refusal([&] { (void)other.root().table("mode").integer("steps"); },
                 {"key mode.steps is missing; expected an integer"});
}

// Messages for a user's mistakes: the place, the problem, and what to write instead.
TEST(Toml, SlipsAreToldInWords) {
  const auto refused = [](const std::string& text, std::initializer_list<std::string_view> parts) {
    expect_refusal([&] { TomlDocument::parse(text, "r.toml"); }, parts);
  };
  refused("a = 1\nkind = decoder\n", {"r.toml:2:", "is no value", "in quotes", "kind = decoder"});
  refused("a = True\n", {"r.toml:1:", "true or false, in small letters", "a = True"});
  refused("a = None\n", {"r.toml:1:", "is no value", "a = None"});
  refused("a = \"x\nb = 1\n", {"r.toml:1:", "a string without its end"});
  refused("[a\nb = 1\n", {"r.toml:1:", "brackets around it"});
  refused("a = 1\na = 2\n", {"r.toml:2:", "for the second time", "a = 2"});
  refused("[a]\n[a]\n", {"r.toml:2:", "for the second time"});
  refused("a: 1\n", {"r.toml:1:", "no = between", "layers = 4"});
  refused("a = 0,5\n", {"r.toml:1:", "goes on behind", "0.05"});
  refused("a =\n", {"r.toml:1:", "a key without a value"});
  refused("# \xfc\n", {"r.toml:1:", "is not UTF-8", "save it again"});
  refused("a = 1 b = 2\n", {"r.toml:1:", "goes on behind"});
}

TEST(Toml, FinishNamesEveryUnknownKey) {
  TomlDocument document = recipe();
  ask_for_everything(document);
  EXPECT_NO_THROW(document.finish());

  document.apply("model.attention.kvheads=3");
  expect_refusal(
      [&] { document.finish(); },
      {"--set model.attention.kvheads: unknown key model.attention.kvheads (did you mean "
       "kv_heads?)"});
  document.apply("model.heads=3");
  document.apply("tokenizer.kind=bpe");
  expect_refusal([&] { document.finish(); },
                 {"r.toml: 3 unknown keys\n", "model.heads (did you mean model.attention.heads?)",
                  "unknown key tokenizer (known here: data, model)", "kv_heads"});
}

// Keys that could have been meant are listed where they are few, and none where none are known.
TEST(Toml, FinishListsTwentyKeysAtMost) {
  const auto complaint = [](int known, const std::string& text) {
    TomlDocument document = TomlDocument::parse(text, "r.toml");
    for (int i = 0; i < known; ++i)
      (void)document.root().table("t").integer_or("key" + std::to_string(10 + i), 0);
    try {
      document.finish();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was refused");
  };
  const std::string text = "[t]\nzzzzzzzzz = 1\n";
  EXPECT_NE(complaint(2, text).find("unknown key t.zzzzzzzzz (known here: key10, key11)"),
            std::string::npos)
      << complaint(2, text);
  EXPECT_NE(complaint(20, text).find("key28, key29)"), std::string::npos) << complaint(20, text);
  EXPECT_TRUE(complaint(21, text).ends_with("unknown key t.zzzzzzzzz")) << complaint(21, text);
  EXPECT_TRUE(complaint(0, text).ends_with("unknown key t")) << complaint(0, text);
}

TEST(Toml, FinishNamesLinesOfTheFile) {
  const TomlDocument document =
      TomlDocument::parse("[model]\nlayers = 2\n[modle]\nwidth = 3\n[model.x]\ny = 1\n", "r.toml");
  (void)document.root().table("model").integer("layers");
  expect_refusal([&] { document.finish(); }, {"r.toml:3: unknown key modle (did you mean model?)",
                                              "r.toml:5: unknown key model.x"});
}

TEST(Toml, OverridesReplaceAndAdd) {
  TomlDocument document = recipe();
  const TomlTable model = document.root().table("model");
  const auto text_of = [&](const char* value) {
    document.set("model.name", value);
    return model.string("name");
  };
  document.apply("model.layers=12");
  document.apply("model.attention.kv_heads = 2");
  document.apply("train.lr=3e-4");
  document.apply("model.tied=false");
  document.apply("model.sizes=[4, 5]");
  EXPECT_EQ(model.integer("layers"), 12);
  EXPECT_EQ(model.table("attention").integer("kv_heads"), 2);
  EXPECT_EQ(document.root().table("train").number("lr"), 3e-4);
  EXPECT_FALSE(model.boolean("tied"));
  EXPECT_EQ(model.integers("sizes"), (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(text_of("bf16"), "bf16");
  EXPECT_EQ(text_of("\"quoted = text\""), "quoted = text");
  EXPECT_EQ(text_of("books/two three.txt"), "books/two three.txt");
  EXPECT_EQ(text_of("a=b # c"), "a=b # c");
  EXPECT_EQ(text_of("1 # not a comment"), "1 # not a comment");
  EXPECT_EQ(text_of("1]\nx = [2"), "1]\nx = [2");
  EXPECT_EQ(text_of("1, 2"), "1, 2");
  EXPECT_EQ(text_of("2020-01-02"), "2020-01-02");
  EXPECT_EQ(text_of("\"\""), "");
  expect_refusal([&] { (void)model.string("layers"); }, {"--set model.layers: key model.layers"});
}

TEST(Toml, OverridesThatMakeNoSenseAreRefused) {
  TomlDocument document = recipe();
  const std::string before = document.text();
  expect_refusal([&] { document.apply("model.layers"); }, {"--set", "path=value"});
  expect_refusal([&] { document.apply("=3"); }, {"--set", "not the path"});
  expect_refusal([&] { document.apply("model..layers=3"); }, {"not the path"});
  expect_refusal([&] { document.apply(".layers=3"); }, {"not the path"});
  expect_refusal([&] { document.apply("model.=3"); }, {"not the path"});
  expect_refusal([&] { document.apply("model.lay ers.x=3"); }, {"not the path"});
  expect_refusal([&] { document.apply("model.layers="); }, {"--set model.layers", "has no value"});
  expect_refusal([&] { document.apply("model.layers=[1"); }, {"not a TOML value", "\"[1\""});
  expect_refusal([&] { document.apply("model.layers=\"x"); }, {"not a TOML value"});
  expect_refusal([&] { document.apply("model.layers.x=1"); },
                 {"key model.layers is not a table", "6 at r.toml:4"});
  expect_refusal([&] { document.apply("model.attention=1"); }, {"model.attention is a table"});
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i) deep += ".a";
  expect_refusal([&] { document.apply(deep + "=1"); }, {"not the path"});
  EXPECT_EQ(document.text(), before);
}

TEST(Toml, PrintsWhatItReads) {
  TomlDocument document = recipe();
  document.apply("model.attention.kv_heads=2");
  document.apply("train.lr=1e-4");
  EXPECT_EQ(document.text(), R"([model]
kind = "decoder"
layers = 6
dropout = 0.1
tied = true
sizes = [1, 2, 3]

[model.attention]
heads = 6
look_back = 128
kv_heads = 2

[data]
text = "books/one.txt"
splits = ["train", "test"]
mix = [0.5, 1]

[train]
lr = 1e-04
)");
  const char* odd = R"(
"a b" = "tab\t quote\" back\\ bell\u0007 \u00e9"
'' = 1.0
x = [[], [{ y = 1, "z z" = [2.5e300, -0.0, inf] }]]
d = 1979-05-27T07:32:00Z
[e]
[f.g."h.i"]
j = -9223372036854775808
[[k]]
l = 1
)";
  const std::string once = TomlDocument::parse(odd, "f").text();
  EXPECT_EQ(TomlDocument::parse(once, "f").text(), once);
  EXPECT_NE(once.find("[f.g.\"h.i\"]"), std::string::npos) << once;
  EXPECT_NE(once.find("[e]\n"), std::string::npos) << once;
  EXPECT_NE(once.find("\\u0007 é"), std::string::npos) << once;
}

RC_GTEST_PROP(Toml, NumbersAndStringsSurvivePrinting, (double number)) {
  RC_PRE(std::isfinite(number));
  const auto text = *rc::gen::container<std::string>(rc::gen::inRange<char>(' ', 0x7f));
  RC_PRE(text.find('\'') == std::string::npos);
  TomlDocument document = TomlDocument::parse("", "f");
  document.set("s", "'" + text + "'");
  document.set("n", std::to_string(number));
  const TomlDocument again = TomlDocument::parse(document.text(), "f");
  RC_ASSERT(again.root().string("s") == text);
  RC_ASSERT(again.root().number("n") == document.root().number("n"));
}

TEST(Toml, SyntaxErrorsNameLineAndColumn) {
  const auto parse = [](const std::string& text) {
    return [text] { TomlDocument::parse(text, "r.toml"); };
  };
  expect_refusal(parse("a = 1\nb = \n"), {"r.toml:2:"});
  expect_refusal(parse("a = 1\na = 2\n"), {"r.toml:2:"});
  expect_refusal(parse("[t]\n[t]\n"), {"r.toml:2:"});
  expect_refusal(parse("a = 99999999999999999999"), {"r.toml:1:"});
  expect_refusal(parse("a = \"\xff\""), {"r.toml:1:"});
  expect_refusal(parse("\n\na = \"open"), {"r.toml:3:"});
  expect_refusal(parse("[=]"), {"r.toml"});  // breaks an assertion of toml++
}

TEST(Toml, LimitsDepthAndSize) {
  const auto parse = [](const std::string& text) {
    return [text] { TomlDocument::parse(text, "f"); };
  };
  std::string dotted = "a";
  for (int i = 0; i < 200000; ++i) dotted += ".a";
  expect_refusal(parse(dotted + " = 1"), {"f:1", "too many parts"});
  expect_refusal(parse("x = 1\n[" + dotted + "]"), {"f:2", "too many parts"});
  expect_refusal(parse("a = " + std::string(100000, '[')), {"f:1"});
  std::string tables = "a = ";
  for (int i = 0; i < 10000; ++i) tables += "{a=";
  expect_refusal(parse(tables), {"f:1"});
  expect_refusal(parse(std::string(2 << 20, '\n')), {"at most 1048576 bytes"});
  EXPECT_NO_THROW(
      parse("a = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.10, 0.11, 0.12, 0.13,"
            "0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.10, 0.11, 0.12, 0.13, 0.1,"
            "0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.10, 0.11, 0.12, 0.13]")());
  const TempDir dir;
  EXPECT_EQ(TomlDocument::read(dir.file("r.toml", "a = 1")).root().integer("a"), 1);
  expect_refusal([&] { TomlDocument::read(dir.file("none.toml")); }, {"none.toml", "No such file"});
}

TEST(Toml, DotsInStringsAndCommentsAreNotPartsOfKeys) {
  const auto parse = [](const std::string& text) {
    return [text] { TomlDocument::parse(text, "f"); };
  };
  const std::string dots(100, '.');
  for (const std::string quote : {"'", "\"", "\"\"\"", "'''"})
    EXPECT_NO_THROW(parse("a = " + quote + dots + quote + " # " + dots)()) << quote;
  EXPECT_NO_THROW(parse("a = \"\"\"" + dots + "\n\" " + dots + R"(""""")")());
  EXPECT_NO_THROW(parse("a = \"\\\"" + dots + "\"")());
  // Quotes that could be taken for the beginning of a string which hides the key.
  std::string key = "a";
  for (int i = 0; i < 100000; ++i) key += ".a";
  for (const std::string before : {"a = { s = \"\"\"\n\"\"\", ", "a = { s = '''\n'''', ",
                                   "a = { s = '', \"\".", "a = { s = '\\', ", "# \"\n"})
    expect_refusal(parse(before + key + " = 1 }"), {"f:", "too many parts"});
  std::string quoted = "\"a\"";
  for (int i = 0; i < 100000; ++i) quoted += " . 'a'";
  expect_refusal(parse(quoted + " = 1"), {"f:1", "too many parts"});
}

TEST(Toml, SurvivesMutations) {
  const std::string odd =
      std::string(kRecipe) + "e = { a.b = [1e5, 0x1f], c = '''x\n''' }\nt = 07:32:00\n[[z]]\n";
  const int refused = survive_mutations(odd, 4000, [](const std::string& bytes) {
    TomlDocument document = TomlDocument::parse(bytes, "fuzz");
    const std::string text = document.text();
    EXPECT_EQ(TomlDocument::parse(text, "again").text(), text);
    document.apply(bytes);
    document.finish();
  });
  EXPECT_GT(refused, 3000);
}

// What a reader asked for is known whether the document has it or not.
TEST(Toml, Facts) {
  const TomlDocument d = TomlDocument::parse("a = 3\nkind = \"x\"\n", "r.toml");
  const TomlTable t = d.root();
  t.integer("a", {1, 9});
  t.number_or("b", 0.5, {0, 1});
  t.number_or("none", 0, {1e-3, 9});  // 0 cannot be given: it stands for none
  t.choice("kind", {"x", "y"});
  t.choice_or("kind", "x", {"x", "z"});
  EXPECT_EQ(t.integer_if("c", {0, 7}), std::nullopt);
  EXPECT_EQ(t.integer_if("a", {0, 7}), 3);
  EXPECT_EQ(t.strings_if("list"), std::nullopt);
  t.note("noted", {.type = "string or list"});
  const auto facts = d.facts();
  EXPECT_TRUE(facts.at("a").required);
  EXPECT_EQ(facts.at("a").type + facts.at("a").low + facts.at("a").high, "integer19");
  EXPECT_EQ(facts.at("b").fallback + " " + facts.at("b").high, "0.5 1");
  EXPECT_EQ(facts.at("none").fallback, "");
  EXPECT_EQ(facts.at("kind").choices, (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(facts.at("c").high, "7");
  EXPECT_FALSE(facts.at("c").required);
  EXPECT_TRUE(facts.at("list").list);
  EXPECT_EQ(facts.at("noted").type, "string or list");
}

}  // namespace
}  // namespace heddle::io
