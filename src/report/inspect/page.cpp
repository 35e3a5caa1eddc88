#include "report/inspect/page.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "io/image.h"
#include "report/html.h"
#include "report/inspect/base64.h"
#include "report/inspect/page_files.h"

namespace heddle::report {

namespace {

using generate::Inspection;
using model::AttentionLayer;
using model::MapPart;
using nlohmann::json;

// Heads up to which pooled maps have more cells: the page stays below some megabytes.
constexpr std::int64_t kFewHeads = 48;

constexpr std::string_view kBody = R"html(
<section><h2>Heads</h2>
<p class="hint">Rows look, columns are looked at. The stronger a cell is coloured, the larger its weight
in its row; grey is hidden by the mask. Click a head to open it.</p>
<div id="grid"></div></section>
<section id="head"><h2 id="head-title"></h2>
<div class="controls"><label>layer <select id="layer"></select></label>
<label>head <select id="head-number"></select></label>
<label>colours <select id="scale"><option value="row">by row</option>
<option value="one">from 0 to 1</option></select></label>
<span class="group"><button data-zoom="1.6" aria-label="zoom in">+</button><button data-zoom="0.625"
aria-label="zoom out">−</button><button data-zoom="fit">whole map</button></span></div>
<div id="image-view" hidden><p class="hint">Left the image, right where the query looks. Click a
patch to make it the query. <button id="class-query">class token as query</button></p>
<div class="images"><canvas id="image-plain"></canvas><canvas id="image-heat"></canvas></div></div>
<div id="reading" role="status">Point at a cell for its weight.</div>
<div><canvas id="map" tabindex="0" aria-label="attention map"></canvas></div>
<p class="hint">Click a row to choose a query; drag to move; with the map clicked, the wheel and the
keys + − 0 ↑ ↓ zoom and choose. <span id="exactness"></span></p>
<p id="strongest"></p>
<div id="text-view" hidden><h3 class="part">As text</h3>
<div id="queries-box"><p class="side">queries: click one</p><div class="text" id="queries-text"></div>
<p class="side">keys, coloured by its weights</p></div>
<div class="text" id="keys-text"></div></div></section>
<section><h2>Statistics</h2><p class="hint">Means over the queries that see at least two keys. Click
a column to sort, a row to open the head. <b>Entropy</b>: how spread a row is; <b>of uniform</b>:
compared with equal weights for all visible keys. <b>Distance</b>: mean |query − key| in tokens, of
images in patches. <b>First</b>, <b>last</b>: weight of the first and the last key.
<b>Monotonic</b>: correlation of a query's place with the mean place it looks at.</p>
<div class="scroll"><table id="stats"></table></div></section>
)html";

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

// The document that the script reads.
class Document {
 public:
  Document(const Inspection& inspection, const HeadTable& heads)
      : inspection_(inspection), layers_(inspection.maps.layers()) {
    root_["tokens"] = {{"source", inspection.source},
                       {"target", inspection.target},
                       {"written", inspection.written}};
    root_["parts"] = {{"self", "Self-attention"},
                      {"encoder", "Encoder: source looks at source"},
                      {"decoder", "Decoder: target looks at target"},
                      {"cross", "Cross-attention: target looks at source"}};
    root_["masks"] = json::array();
    for (std::size_t i = 0; i < layers_.size(); ++i) add_layer(layers_[i], heads[i]);
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

  // In a script element nothing may look like its end.
  std::string text() const {
    std::string out;
    for (const char c : root_.dump(-1, ' ', false, json::error_handler_t::replace))
      if (c == '<')
        out += "\\u003c";
      else
        out += c;
    return out;
  }

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
  return g.class_token ? 0 : g.rows / 2 * g.columns + g.columns / 2;
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

MadePage inspect_page(const InspectPage& page, const Inspection& inspection, const HeadTable& heads,
                      const MapChoice& choice) {
  Document document(inspection, heads);
  MadePage made;
  made.wanted_heads = static_cast<std::int64_t>(choice.heads.size());
  std::int64_t budget = page.most_exact_bytes;
  for (const HeadPlace& place : choice.heads) {
    const RowRange rows = choice.rows_of(inspection.maps.layers()[place.layer]);
    if (document.add_exact(place, rows, budget)) ++made.exact_heads;
  }
  const HeadPlace first = choice.heads.front();
  document.open(first, first_query(inspection, inspection.maps.layers()[first.layer], choice));

  Page out(page.title, page.subtitle);
  out.add_style(kInspectStyle);
  out.add(facts(page.facts));
  out.add({std::string(kBody)});
  out.add({"<script type=\"application/json\" id=\"attention-data\">" + document.text() +
           "</script>\n"});
  out.add_script(kInspectMapScript);
  out.add_script(kInspectViewScript);
  made.html = out.html();
  return made;
}

}  // namespace heddle::report
