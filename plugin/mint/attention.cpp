// Attention by ATen's products and its softmax, in float32 where the inputs have fewer digits.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>

#include <array>
#include <limits>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

namespace {

// MindSpore's numbers. The letters are batch, heads, sequence, size of a head; H is of all heads
// and T of all sequences, one behind the other.
enum Layout : int64_t { kBSH, kBNSD, kSBH, kBSND, kTND, kTH };
enum Sparse : int64_t { kFull, kWhole, kUpperLeft, kLowerRight, kBand, kPrefix };

struct Options {
  int64_t heads;
  double kept;
  double scale;
  int64_t before;
  int64_t after;
  int64_t layout;
  int64_t sparse;
  OptionalIntArrayRef prefix;
  OptionalIntArrayRef query_ends;
  OptionalIntArrayRef key_ends;

  bool is_packed() const { return layout == kTND || layout == kTH; }
};

// A view in the layout BNSD; of packed sequences of one batch.
Tensor by_heads(const Tensor& x, int64_t layout, int64_t size) {
  switch (layout) {
    case kBSH:
      return x.unflatten(2, {-1, size}).transpose(1, 2);
    case kBNSD:
      return x;
    case kSBH:
      return x.unflatten(2, {-1, size}).permute({1, 2, 0, 3});
    case kBSND:
      return x.transpose(1, 2);
    case kTND:
      return x.transpose(0, 1).unsqueeze(0);
    case kTH:
      return x.unflatten(1, {-1, size}).transpose(0, 1).unsqueeze(0);
    default:
      TORCH_CHECK(false, "expected the layout BSH, BNSD, SBH, BSND, TND or TH, got number ",
                  layout);
  }
}

int64_t size_of_head(const Tensor& query, const Options& options) {
  const bool has_heads = options.layout != kBSH && options.layout != kSBH && options.layout != kTH;
  return has_heads ? query.size(-1) : query.size(-1) / options.heads;
}

// Which keys a query does not see.
Optional<Tensor> hidden(const Tensor& scores, OptionalTensor mask, const Options& options) {
  const int64_t sparse = options.sparse;
  TORCH_CHECK(sparse >= kFull && sparse <= kPrefix, "expected sparse_mode from 0 to 5, got ",
              sparse);
  if (sparse == kWhole || sparse == kFull) {
    if (!mask.has_value()) {
      return Optional<Tensor>();
    }
    if (sparse == kWhole) {
      return mask->to(at::kBool);
    }
  }
  const int64_t rows = scores.size(-2);
  const int64_t columns = scores.size(-1);
  const int64_t shift = sparse == kFull || sparse == kUpperLeft ? 0 : columns - rows;
  // How far the key is behind the query, for each pair.
  const Tensor behind = at::arange(columns) - at::arange(rows).unsqueeze(1) - shift;
  if (sparse == kFull || sparse == kBand) {
    const Tensor outside = behind.gt(options.after).logical_or_(behind.lt(-options.before));
    return sparse == kFull ? mask->to(at::kBool).logical_or(outside) : outside;
  }
  const Tensor later = behind.gt(0);
  if (sparse != kPrefix) {
    return later;
  }
  TORCH_CHECK(options.prefix.has_value(), "expected `prefix` with sparse_mode 5");
  const Tensor seen = at::arange(columns).lt(at::tensor(*options.prefix).view({-1, 1, 1, 1}));
  return later.logical_and(seen.logical_not());
}

// One bit for each probability, the lowest of a byte first.
Tensor bits(const Tensor& bytes, const Tensor& like) {
  const Tensor places = at::arange(8, at::kByte);
  const Tensor each = bytes.flatten().unsqueeze(1).bitwise_right_shift(places).bitwise_and(1);
  return each.flatten().narrow(0, 0, like.numel()).view(like.sizes()).to(like.scalar_type());
}

// A batch in the layout BNSD, with as many heads of keys as of queries.
struct Attention {
  Attention(const Tensor& query, const Tensor& key, OptionalTensor shift, OptionalTensor dropped,
            OptionalTensor mask, const Options& options) {
    Tensor scores = at::matmul(query, key.mT());
    if (shift.has_value()) {
      scores.add_(*shift);
    }
    scores.mul_(options.scale);
    const auto unseen = hidden(scores, mask, options);
    if (unseen.has_value()) {
      scores.masked_fill_(*unseen, -std::numeric_limits<double>::infinity());
    }
    max = scores.amax(-1, /*keepdim=*/true);
    // A query that sees no key gets zeros.
    scores.sub_(max.masked_fill(max.isinf(), 0)).exp_();
    sum = scores.sum(-1, /*keepdim=*/true);
    probabilities = scores.div_(sum.masked_fill(sum.eq(0), 1));
    if (dropped.has_value()) {
      kept = bits(*dropped, probabilities).div_(options.kept);
    }
  }

  Tensor drop(const Tensor& x) const { return kept.defined() ? x * kept : x; }

  Tensor probabilities;
  Tensor max;
  Tensor sum;
  Tensor kept;  // undefined: all
};

// The rows of sequence `i` of those that end there.
Tensor sequence(const Tensor& x, OptionalIntArrayRef ends, std::size_t i) {
  TORCH_CHECK(ends.has_value(), "expected actual_seq_qlen and actual_seq_kvlen with this layout");
  const int64_t begin = i == 0 ? 0 : ends->at(i - 1);
  return x.slice(0, begin, ends->at(i));
}

// Calls `of_one` for each sequence of packed ones, else once for all: with its inputs and what it
// writes.
template <std::size_t n, class Function>
void for_each_sequence(const Options& options, const std::array<Tensor, n>& of_queries,
                       const std::array<Tensor, n>& of_keys, const Function& of_one) {
  if (!options.is_packed()) {
    of_one(of_queries, of_keys);
    return;
  }
  const std::size_t count = options.query_ends.has_value() ? options.query_ends->size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    std::array<Tensor, n> queries;
    std::array<Tensor, n> keys;
    for (std::size_t j = 0; j < n; ++j) {
      queries[j] =
          of_queries[j].defined() ? sequence(of_queries[j], options.query_ends, i) : Tensor();
      keys[j] = of_keys[j].defined() ? sequence(of_keys[j], options.key_ends, i) : Tensor();
    }
    of_one(queries, keys);
  }
}

at::ScalarType wide(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// As many as `heads`: each head of keys is for several of queries that follow each other.
Tensor for_queries(const Tensor& x, int64_t heads) {
  return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
}

Tensor for_keys(const Tensor& gradient, int64_t heads) {
  return gradient.size(1) == heads ? gradient : gradient.unflatten(1, {heads, -1}).sum(2);
}

void check(OptionalTensor dropped, const Options& options) {
  TORCH_CHECK(options.kept == 1 || dropped.has_value(), "expected drop_mask with keep_prob ",
              options.kept);
  TORCH_CHECK(!options.is_packed() || !dropped.has_value(),
              "expected no drop_mask with packed sequences");
}

}  // namespace

ATEN_BRIDGE_EXPORT(FlashAttentionScore, [](const Tensor& query, const Tensor& key,
                                           const Tensor& value, OptionalTensor shift,
                                           OptionalTensor dropped, OptionalTensor,
                                           OptionalTensor mask, OptionalIntArrayRef prefix,
                                           OptionalIntArrayRef query_ends,
                                           OptionalIntArrayRef key_ends, int64_t heads, double kept,
                                           double scale, int64_t before, int64_t after, int64_t,
                                           int64_t layout, int64_t sparse, Tensor& max, Tensor& sum,
                                           Tensor& unused, Tensor& y) {
  const Options options = {heads,  kept,   scale,  before,     after,
                           layout, sparse, prefix, query_ends, key_ends};
  check(dropped, options);
  const int64_t size = size_of_head(query, options);
  const auto of_heads = [&](const Tensor& x) { return by_heads(x, layout, size).to(wide(query)); };
  unused.zero_();
  if (options.is_packed()) {
    y.zero_();  // rows behind the last sequence
  }
  const bool has_rows = !options.is_packed();
  for_each_sequence<2>(options, {query, y}, {key, value},
                       [&](const auto& queries, const auto& keys) {
                         const Tensor q = of_heads(queries[0]);
                         const Attention attention(q, for_queries(of_heads(keys[0]), q.size(1)),
                                                   shift, dropped, mask, options);
                         by_heads(queries[1], layout, size)
                             .copy_(at::matmul(attention.drop(attention.probabilities),
                                               for_queries(of_heads(keys[1]), q.size(1))));
                         if (has_rows) {  // the gradient's kernel needs none for packed rows
                           max.copy_(attention.max.expand_as(max));
                           sum.copy_(attention.sum.expand_as(sum));
                         }
                       });
  if (!has_rows) {
    max.zero_();
    sum.zero_();
  }
});

ATEN_BRIDGE_EXPORT(
    FlashAttentionScoreGrad,
    [](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& dy,
       OptionalTensor shift, OptionalTensor dropped, OptionalTensor, OptionalTensor mask,
       OptionalTensor, OptionalTensor, OptionalTensor, OptionalTensor, OptionalIntArrayRef prefix,
       OptionalIntArrayRef query_ends, OptionalIntArrayRef key_ends, int64_t heads, double kept,
       double scale, int64_t before, int64_t after, int64_t, int64_t layout, int64_t sparse,
       Tensor& dquery, Tensor& dkey, Tensor& dvalue, Tensor& dshift) {
      const Options options = {heads,  kept,   scale,  before,     after,
                               layout, sparse, prefix, query_ends, key_ends};
      check(dropped, options);
      const int64_t size = size_of_head(query, options);
      const auto of_heads = [&](const Tensor& x) {
        return by_heads(x, layout, size).to(wide(query));
      };
      dshift.zero_();
      if (options.is_packed()) {
        for (const Tensor& gradient : {dquery, dkey, dvalue}) {
          gradient.zero_();  // rows behind the last sequence
        }
      }
      for_each_sequence<4>(
          options, {query, dy, dquery, {}}, {key, value, dkey, dvalue},
          [&](const auto& queries, const auto& keys) {
            const Tensor q = of_heads(queries[0]);
            const Tensor k = for_queries(of_heads(keys[0]), q.size(1));
            const Tensor v = for_queries(of_heads(keys[1]), q.size(1));
            const Tensor d = of_heads(queries[1]);
            const Attention attention(q, k, shift, dropped, mask, options);
            const Tensor& p = attention.probabilities;
            const Tensor dp = attention.drop(at::matmul(d, v.mT()));
            const Tensor dscores =
                (dp - (dp * p).sum(-1, /*keepdim=*/true)).mul_(p).mul_(options.scale);
            const auto write = [&](const Tensor& to, const Tensor& gradient) {
              Tensor part = by_heads(to, layout, size);
              part.copy_(for_keys(gradient, part.size(1)));
            };
            write(queries[2], at::matmul(dscores, k));
            write(keys[2], at::matmul(dscores.mT(), q));
            write(keys[3], at::matmul(attention.drop(p).mT(), d));
            if (shift.has_value()) {
              dshift.add_(dscores.sum_to_size(shift->sizes()));
            }
          });
    });
