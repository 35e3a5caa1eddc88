#include "report/inspect/page.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "heddle/error.h"
#include "io/images/image.h"
#include "language/language.h"
#include "report/inspect/base64.h"
#include "report/inspect/page_files.h"
#include "report/inspect/words.h"
#include "report/page/html.h"

namespace heddle::report {

namespace {

using model::AttentionLayer;
using model::MapPart;
using nlohmann::json;

// Heads up to which pooled maps have more cells: the page stays below some megabytes.
constexpr std::int64_t kFewHeads = 48;

std::string encoded(const std::vector<float>& values) {
  return base64({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

// Visible pairs of a range of rows.
std::int64_t pairs_of(const AttentionLayer& layer, const RowRange& rows) {
  std::int64_t pairs = 0;
  for (std::int64_t i = rows.first; i < rows.end; ++i)
    pairs += layer.visible[static_cast<std::size_t>(i)].count();
  return pairs;
}

std::vector<float> visible_weights(const model::AttentionMaps& maps, const HeadPlace& place,
                                   const RowRange& rows) {
  const AttentionLayer& layer = maps.layers()[place.layer];
  std::vector<float> all;
  all.reserve(static_cast<std::size_t>(pairs_of(layer, rows)));
  const std::int64_t block = maps.rows_at_once(place.layer);
  for (std::int64_t first = rows.first; first < rows.end; first += block) {
    const std::int64_t count = std::min(block, rows.end - first);
    const Tensor part = maps.rows(place.layer, place.head, first, count);
    for (std::int64_t i = 0; i < count; ++i) {
      const model::KeyRange seen = layer.visible[static_cast<std::size_t>(first + i)];
      const float* row = part.data<float>() + i * layer.keys;
      all.insert(all.end(), row + seen.first, row + seen.last);
    }
  }
  return all;
}

const char* list_of(MapPart part, bool queries) {
  if (part == MapPart::cross) return queries ? "written" : "source";
  return part == MapPart::decoder ? "target" : "source";
}

// The data of one side, as the script reads it.
class Document {
 public:
  explicit Document(const InspectSide& side)
      : inspection_(side.inspection), layers_(side.inspection.maps.layers()) {
    const Inspection& inspection = side.inspection;
    root_["name"] = side.name;
    root_["tokens"] = {{"source", inspection.source},
                       {"target", inspection.target},
                       {"written", inspection.written}};
    root_["masks"] = json::array();
    for (std::size_t i = 0; i < layers_.size(); ++i) add_layer(layers_[i], side.heads[i]);
    if (inspection.grid) add_image();
  }

  // Whether the rows fit what is left of the budget.
  bool add_exact(const HeadPlace& place, const RowRange& rows, std::int64_t& budget) {
    const AttentionLayer& layer = layers_[place.layer];
    const std::int64_t bytes = pairs_of(layer, rows) * 16 / 3;  // f32 as base64
    if (bytes > budget || rows.first >= rows.end) return false;
    budget -= bytes;
    json& own = map_at(place);
    own["exact"] = {{"first", rows.first},
                    {"count", rows.end - rows.first},
                    {"data", encoded(visible_weights(inspection_.maps, place, rows))}};
    // Thumbnails of long maps are made of cells, whether the head is exact or not: they would show
    // different things otherwise.
    const bool whole = rows.first == 0 && rows.end == layer.queries;
    const bool a_cell_each =
        own["pooled"]["rows"] == layer.queries && own["pooled"]["columns"] == layer.keys;
    if (whole && a_cell_each) own.erase("pooled");
    return true;
  }

  void open(const HeadPlace& place, std::int64_t query) {
    root_["open"] = {place.layer, place.head, query};
  }

  json take() { return std::move(root_); }

 private:
  json& map_at(const HeadPlace& place) {
    return root_["layers"][place.layer]["maps"][static_cast<std::size_t>(place.head)];
  }

  void add_layer(const AttentionLayer& layer, const std::vector<model::HeadSummary>& heads) {
    json l = {{"name", layer.name},
              {"part", model::to_string(layer.part)},
              {"queries", list_of(layer.part, true)},
              {"keys", list_of(layer.part, false)},
              {"rows", layer.queries},
              {"columns", layer.keys},
              {"mask", mask_of(layer)}};
    for (const model::HeadSummary& h : heads) {
      l["stats"].push_back(stats_json(h.stats));
      const model::PooledMap& p = h.pooled;
      l["maps"].push_back(
          {{"pooled", {{"rows", p.rows}, {"columns", p.columns}, {"data", encoded(p.shares)}}}});
    }
    root_["layers"].push_back(std::move(l));
  }

  // Most layers have the same mask: it is written once.
  std::size_t mask_of(const AttentionLayer& layer) {
    for (std::size_t i = 0; i < masks_.size(); ++i)
      if (masks_[i]->visible == layer.visible) return i;
    json first = json::array(), last = json::array();
    for (const model::KeyRange& r : layer.visible) {
      first.push_back(r.first);
      last.push_back(r.last);
    }
    root_["masks"].push_back({{"first", first}, {"last", last}});
    masks_.push_back(&layer);
    return masks_.size() - 1;
  }

  void add_image() {
    root_["image"] = {{"src", "data:image/png;base64," + base64(io::encode_png(inspection_.image))},
                      {"rows", inspection_.grid->rows},
                      {"columns", inspection_.grid->columns},
                      {"before", inspection_.grid->before},
                      {"class_token", inspection_.grid->class_token}};
  }

  const Inspection& inspection_;
  const std::vector<AttentionLayer>& layers_;
  std::vector<const AttentionLayer*> masks_;
  json root_;
};

// The query that a page begins with: of text the last one, which has seen most; of an image the
// class token, or the patch in the middle.
std::int64_t first_query(const Inspection& inspection, const AttentionLayer& layer,
                         const MapChoice& choice) {
  if (choice.rows) return choice.rows_of(layer).first;
  if (!inspection.grid) return layer.queries - 1;
  const model::PatchGrid& g = *inspection.grid;
  return g.class_token ? 0 : g.before + g.rows / 2 * g.columns + g.columns / 2;
}

// Translating is looking at the source: without a request the page opens the head of the
// cross-attention that looks most decidedly, which has the least entropy.
HeadPlace first_head(const InspectSide& side) {
  const HeadPlace first = side.choice.heads.front();
  if (side.asked) return first;
  const auto& layers = side.inspection.maps.layers();
  std::optional<HeadPlace> best;
  double least = 0;
  for (const HeadPlace& place : side.choice.heads) {
    if (!layers[place.layer].cross()) continue;
    const auto head = static_cast<std::size_t>(place.head);
    const double own = side.heads[place.layer][head].stats.entropy_share.value_or(1);
    if (!best || own < least) {
      best = place;
      least = own;
    }
  }
  return best.value_or(first);
}

// In a script element nothing may look like its end.
std::string script_text(const json& document) {
  std::string out;
  for (const char c : document.dump(-1, ' ', false, json::error_handler_t::replace))
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

void check_sides(std::span<const InspectSide> sides) {
  if (sides.empty() || sides.size() > 2)
    fail(ErrorCode::invalid_argument, "inspect", "inputs of a page", "one or two",
         std::to_string(sides.size()));
  if (sides.front().inspection.grid.has_value() != sides.back().inspection.grid.has_value())
    fail(ErrorCode::invalid_argument, "inspect", "two sides of a page",
         "two models of texts, or two of images", "one of each");
}

}  // namespace

json stats_json(const model::HeadStats& s) {
  json j = {{"queries", s.queries}};
  const auto put = [&j](const char* key, const std::optional<double>& value) {
    if (value) j[key] = *value;
  };
  put("entropy_bits", s.entropy_bits);
  put("entropy_share", s.entropy_share);
  put("largest", s.largest);
  put("first", s.first);
  put("last", s.last);
  put("distance", s.distance);
  put("self", s.self);
  put("previous", s.previous);
  put("next", s.next);
  put("monotonicity", s.monotonicity);
  put("sink", s.sink);
  return j;
}

HeadTable summarise_heads(const Inspection& inspection,
                          const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const auto& layers = inspection.maps.layers();
  std::int64_t total = 0, done = 0;
  for (const AttentionLayer& l : layers) total += l.heads;
  const model::SummaryOptions options{total <= kFewHeads ? 128 : 64, inspection.grid};
  HeadTable all(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i)
    for (std::int64_t h = 0; h < layers[i].heads; ++h) {
      all[i].push_back(model::summarise(inspection.maps, i, h, options));
      if (progress) progress(++done, total);
    }
  return all;
}

MadePage inspect_page(const InspectPage& page, std::span<const InspectSide> sides) {
  check_sides(sides);
  MadePage made;
  json document = {{"words", inspect_words()}, {"parts", inspect_parts()}};
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const InspectSide& side = sides[i];
    Document own(side);
    made.wanted_heads += static_cast<std::int64_t>(side.choice.heads.size());
    // Both sides have the same room, so that the same heads are exact on both.
    std::int64_t budget = page.most_exact_bytes / static_cast<std::int64_t>(sides.size());
    for (const HeadPlace& place : side.choice.heads) {
      const RowRange rows = side.choice.rows_of(side.inspection.maps.layers()[place.layer]);
      if (own.add_exact(place, rows, budget)) ++made.exact_heads;
    }
    const HeadPlace first = first_head(side);
    const AttentionLayer& layer = side.inspection.maps.layers()[first.layer];
    own.open(first, first_query(side.inspection, layer, side.choice));
    document["sides"].push_back(own.take());
  }

  Page out(page.title, page.subtitle);
  out.add_style(kInspectStyle);
  out.add(facts(page.facts));
  out.add(inspect_body(sides.size()));
  out.add({"<script type=\"application/json\" id=\"attention-data\">" + script_text(document) +
           "</script>\n"});
  for (const char* script :
       {kInspectNumbersScript, kInspectMapScript, kInspectPageScript, kInspectViewScript})
    out.add_script(script);
  made.html = out.html();
  return made;
}

}  // namespace heddle::report
