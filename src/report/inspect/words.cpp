#include "report/inspect/words.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "language/language.h"

namespace heddle::report {

namespace {

using nlohmann::json;

std::string hint(const std::string& text) {
  return "<p class=\"hint\">" + escaped(text) + "</p>\n";
}

std::string heads_section(std::size_t sides) {
  std::string out = "<section><h2>" + escaped(tr("Heads")) + "</h2>\n";
  out +=
      hint(tr("Rows look, columns are looked at. The stronger a cell is coloured, the larger its "
              "weight; grey is hidden by the mask. Click a head to open it."));
  if (sides > 1)
    out +=
        hint(tr("A click opens the same head on both sides, where both have it. Above each map "
                "its own head can be chosen."));
  return out + "<div id=\"grid\"></div></section>\n";
}

std::string map_controls() {
  return fmt::format(
      "<div class=\"controls\"><label>{} <select id=\"scale\"><option value=\"row\">{}</option>\n"
      "<option value=\"one\">{}</option></select></label>\n"
      "<span class=\"group\"><button data-zoom=\"1.6\" aria-label=\"{}\">+</button><button "
      "data-zoom=\"0.625\" aria-label=\"{}\">−</button><button "
      "data-zoom=\"fit\">{}</button></span></div>\n",
      escaped(tr("colours")), escaped(tr("by row")), escaped(tr("from 0 to 1")),
      escaped(tr("zoom in")), escaped(tr("zoom out")), escaped(tr("whole map")));
}

std::string map_section() {
  std::string out = "<section id=\"head\"><h2 id=\"head-title\"></h2>\n" + map_controls();
  out += "<div id=\"image-view\" hidden>" +
         hint(tr("Left the image, right where the query looks. Click a patch to make it the "
                 "query, which is outlined in blue; patches that it looks at most are outlined in "
                 "white.")) +
         "<div id=\"image-sides\"></div></div>\n";
  out += "<div id=\"reading\" role=\"status\">" + escaped(tr("Point at a cell for its weight.")) +
         "</div>\n<div id=\"head-body\"><div id=\"maps\"></div>\n";
  out += "<div id=\"text-view\" hidden><h3 class=\"part\">" + escaped(tr("As text")) +
         "</h3>\n<div id=\"text-sides\"></div></div></div>\n";
  out += "<p class=\"hint\">" +
         escaped(tr("Click a row to choose a query; drag to move; with the map clicked, the wheel "
                    "and the keys + − 0 ↑ ↓ zoom and choose.")) +
         " <span id=\"exactness\"></span></p>\n<div id=\"tip\" hidden></div></section>\n";
  return out;
}

std::string statistics_section() {
  std::string out = "<section><h2>" + escaped(tr("Statistics")) + "</h2>\n";
  out +=
      hint(tr("Means over the queries that see at least two keys. Click a column to sort, a row "
              "to open the head."));
  out += "<dl class=\"meanings\">\n";
  const auto meaning = [&out](const std::string& name, const std::string& text) {
    out += "<dt>" + escaped(name) + "</dt><dd>" + escaped(text) + "</dd>\n";
  };
  meaning(tr("entropy, bits"), tr("how spread a row is"));
  meaning(tr("of uniform"), tr("entropy, compared with equal weights for all visible keys"));
  meaning(tr("distance"), tr("mean |query − key| in tokens, of images in patches"));
  meaning(tr("first, last"), tr("weight of the first and of the last key"));
  meaning(tr("monotonic"),
          tr("correlation of a query's place with the mean place that it looks at"));
  return out + "</dl>\n<div class=\"scroll\"><table id=\"stats\"></table></div></section>\n";
}

}  // namespace

Html inspect_body(std::size_t sides) {
  return {heads_section(sides) + map_section() + statistics_section()};
}

json inspect_parts() {
  return {{"self", tr("Self-attention")},
          {"encoder", tr("Encoder: source looks at source")},
          {"decoder", tr("Decoder: target looks at target")},
          {"cross", tr("Cross-attention: target looks at source")}};
}

json inspect_words() {
  return {
      {"head_name", tr("layer $1, head $2")},
      {"head_title", tr("$1, layer $2, head $3")},
      {"two_heads", tr("Two heads")},
      {"entropy_told", tr("entropy $1 bits")},
      {"distance_told", tr("distance $1")},
      {"is_pooled", tr("pooled")},
      {"layer_name", tr("layer $1")},
      {"layer", tr("layer")},
      {"head", tr("head")},
      {"map_label", tr("attention map: $1")},
      {"reading", tr("query $1 $2 → key $3 $4: $5")},
      {"hidden_reading", tr("query $1 $2 → key $3 $4: hidden by the mask")},
      {"pooled_reading", tr("queries $1 to $2 give keys $3 to $4 the share $5 (pooled)")},
      {"difference", tr("B − A")},
      {"more_in_second", tr("blue: B gives more")},
      {"less_in_second", tr("orange: A gives more")},
      {"difference_reading", tr("query $1 $2 → key $3 $4: A $5, B $6, B − A $7")},
      {"no_difference", tr("query $1 $2 → key $3 $4: hidden by a mask, or pooled in one of them")},
      {"all_exact", tr("All weights of this head are in the page, as the model computed them.")},
      {"some_exact",
       tr("Queries $1 to $2 are exact; the others are pooled: a cell is the mean share "
          "of attention that its queries give to all of its keys ($3 × $4 cells).")},
      {"none_exact", tr("This head is pooled: a cell is the mean share of attention that its "
                        "queries give to all of its keys ($1 × $2 cells).")},
      {"queries_side", tr("queries: click one")},
      {"keys_side", tr("keys, coloured by its weights")},
      {"query_told", tr("query $1 $2")},
      {"query_pooled", tr("Query $1 $2 is pooled: colours are those of its cell.")},
      {"query_blind", tr("Query $1 $2 sees no key.")},
      {"query_looks", tr("Query $1 $2 looks at $3")},
      {"class_query", tr("class token as query")},
      {"heat_low", tr("no weight")},
      {"heat_high", tr("most weight")},
      {"column_side", tr("side")},
      {"column_layer", tr("layer")},
      {"column_head", tr("head")},
      {"column_entropy_bits", tr("entropy, bits")},
      {"column_of_uniform", tr("of uniform")},
      {"column_largest", tr("largest")},
      {"column_distance", tr("distance")},
      {"column_self", tr("self")},
      {"column_previous", tr("previous")},
      {"column_next", tr("next")},
      {"column_first", tr("first")},
      {"column_last", tr("last")},
      {"column_monotonic", tr("monotonic")},
      {"column_sink", tr("sink")},
  };
}

}  // namespace heddle::report
