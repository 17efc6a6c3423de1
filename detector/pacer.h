// PACER: happens-before detection that samples, and finds each race with the probability with which
// it samples (Bond, Coons and McKinley, PLDI 2010).
#pragma once

#include <cstdint>
#include <random>

#include "detector/happens_before_detector.h"
#include "detector/pacer_clocks.h"

namespace trapline {

// All threads sample together. Sampling periods come from the stream (kSamplingBegin,
// kSamplingEnd); as long as there are none, every period of options.sampling_period events is
// sampled with probability options.sampling_rate. A race is found if its first access was sampled.
class Pacer final : public HappensBeforeDetector<Pacer, PacerClocks> {
 public:
  explicit Pacer(const DetectorOptions& options)
      : HappensBeforeDetector(options),
        rate_(options.sampling_rate),
        period_(options.sampling_period == 0 ? 1 : options.sampling_period),
        random_(options.seed) {}

  void OnPlain(const Event& event, std::uint64_t index);
  void OnAtomic(const Event& event, std::uint64_t index, bool access_counts, bool synchronises);
  void OnSynchronise(const Event& event, std::uint64_t index);
  void OnSampling(bool begins);
  void CheckAgainstPlain(const Event& atomic, std::uint64_t index);
  void OnClear(std::uint64_t address, std::uint64_t size);
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);
  bool RecordsAtomics() { return synchronisation_.clocks().sampling; }

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return "pacer"; }

 private:
  struct Cell {
    AccessHistory reads;   // R_f; empty = null
    AccessHistory writes;  // W_f: at most one
  };

  bool sampling() { return synchronisation_.clocks().sampling; }
  void SetSampling(bool sampling);
  // Draws for all periods that have begun by the event at `index`.
  void AdvanceTo(std::uint64_t index) {
    if (index >= next_period_) [[unlikely]]
      StartPeriod(index);
  }
  void StartPeriod(std::uint64_t index);

  void Read(Cell& cell, const TimedAccess& now, std::uint64_t address, std::uint64_t size);
  void Write(Cell& cell, const TimedAccess& now, std::uint64_t address, std::uint64_t size);
  void Check(const AccessHistory& history, const Access& now, std::uint64_t address,
             std::uint64_t size);

  double rate_;
  std::uint64_t period_;
  std::mt19937_64 random_;
  std::uint64_t next_period_ = 0;
  ShadowMemory<Cell> shadow_;
  std::uint64_t sampled_ = 0;
  std::uint64_t untouched_ = 0;
  std::uint64_t accesses_ = 0;
  std::uint64_t discarded_ = 0;
};

}  // namespace trapline
