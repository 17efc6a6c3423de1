#include "tools/doctor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hypervisor/machine.h"
#include "tools/command_line.h"

namespace trapline {
namespace {

enum class Verdict { kGood, kNote, kBad };

struct Finding {
  std::string name;  // key in the JSON
  std::string value;
  Verdict verdict = Verdict::kGood;
  std::string advice;  // what to do; empty when there is nothing to do
  nlohmann::json json;
};

class Findings {
 public:
  void Add(const std::string& name, const std::string& value, nlohmann::json json = nullptr,
           Verdict verdict = Verdict::kGood, const std::string& advice = "") {
    if (json.is_null()) json = value;
    findings_.push_back({name, value, verdict, advice, std::move(json)});
    if (verdict == Verdict::kBad) works_ = false;
  }
  void Bad(const std::string& name, const std::string& value, const std::string& advice) {
    Add(name, value, nullptr, Verdict::kBad, advice);
  }
  bool works() const { return works_; }

  void Print(bool json) const {
    if (json) {
      nlohmann::ordered_json out;
      out["version"] = 1;
      out["works"] = works_;
      for (const Finding& finding : findings_) {
        out[finding.name] = finding.json;
        if (!finding.advice.empty()) out["advice"][finding.name] = finding.advice;
      }
      fmt::print("{}\n", out.dump(2));
      return;
    }
    for (const Finding& finding : findings_) {
      const char* mark = finding.verdict == Verdict::kGood   ? "ok  "
                         : finding.verdict == Verdict::kNote ? "note"
                                                             : "BAD ";
      fmt::print("{} {:<22} {}\n", mark, finding.name, finding.value);
      if (!finding.advice.empty()) fmt::print("     {:<22} -> {}\n", "", finding.advice);
    }
    fmt::print("{}\n",
               works_ ? "`trapline run` can work here." : "`trapline run` cannot work here.");
  }

 private:
  std::vector<Finding> findings_;
  bool works_ = true;
};

bool CpuHasVirtualization() {
  std::unique_ptr<FILE, int (*)(FILE*)> info(std::fopen("/proc/cpuinfo", "re"), &std::fclose);
  char line[4096];
  while (info && std::fgets(line, sizeof line, info.get()) != nullptr) {
    if (std::strstr(line, " svm") != nullptr || std::strstr(line, " vmx") != nullptr) return true;
  }
  return false;
}

std::string AdviceForAccess(const std::string& device) {
  struct stat status {};
  if (stat(device.c_str(), &status) == 0 && status.st_gid != 0 && (status.st_mode & 0060) == 0060) {
    return fmt::format(
        "join its group, number {} (`ls -l {}` names it; `sudo usermod -aG GROUP $USER`, then log "
        "in "
        "again), or run as root",
        status.st_gid, device);
  }
  return fmt::format(
      "run as root, or have root open the device to you (`sudo chmod 666 {}`, or an udev rule)",
      device);
}

bool CheckDevice(Findings& findings) {
  const char* override_path = std::getenv("TRAPLINE_KVM_DEVICE");
  const std::string device = override_path != nullptr ? override_path : "/dev/kvm";
  if (access(device.c_str(), F_OK) != 0) {
    findings.Bad("device", fmt::format("{}: {}", device, std::strerror(errno)),
                 CpuHasVirtualization() ? "load the module: `modprobe kvm_amd` or `modprobe "
                                          "kvm_intel`, as root; in a container, pass the device in"
                                        : "no virtualisation is offered to this machine: switch it "
                                          "on in the firmware, or, in a virtual machine, "
                                          "have nested virtualisation switched on for it");
    return false;
  }
  const int fd = open(device.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    findings.Bad("device", fmt::format("{}: {}", device, std::strerror(errno)),
                 errno == EACCES ? AdviceForAccess(device)
                                 : "see the kernel's messages (`dmesg | grep -i kvm`)");
    return false;
  }
  close(fd);
  findings.Add("device", fmt::format("{} can be used", device), device);
  return true;
}

void CheckMachine(Findings& findings) {
  std::unique_ptr<Machine> machine;
  try {
    machine = std::make_unique<Machine>();
  } catch (const std::exception& error) {
    findings.Bad("machine", error.what(),
                 "see the kernel's messages (`dmesg | grep -i kvm`); is another hypervisor holding "
                 "the processor?");
    return;
  }
  const HostKind& host = machine->host();
  findings.Add("system_calls",
               host.syscall_arrives_in_ring0
                   ? "SYSCALL arrives in ring 0 (hardware virtualisation)"
                   : "SYSCALL stays in ring 3 (software virtualisation, as kvm_pvm)",
               host.syscall_arrives_in_ring0 ? "ring0" : "ring3");
  findings.Add("tss_type", fmt::format("ring-3 exits work with TSS type {}", host.tss_type),
               host.tss_type);

  Carrier& carrier = machine->Acquire();
  const std::uint64_t exit_ns = machine->MeasureExit(carrier);
  const bool slow = exit_ns > 10000;
  findings.Add("exit_ns", fmt::format("{} ns for an exit and back", exit_ns), exit_ns,
               slow ? Verdict::kNote : Verdict::kGood,
               slow ? "each system call and each first touch of a page costs this much: programs "
                      "that make many are slower here"
                    : "");
  const std::uint64_t fault_ns = machine->MeasureFault(carrier);
  findings.Add(
      "fault_ns",
      fmt::format("{} ns for a page fault taken and returned from inside the guest", fault_ns),
      fault_ns);
  constexpr unsigned kFrames = 8;
  std::uint64_t redirect_ns = 0;
  try {
    redirect_ns = machine->MeasureRedirect(carrier, kFrames);
  } catch (const KvmError& error) {
    findings.Bad("code_cache", error.what(),
                 "is the address space limited (`ulimit -v`)? The code cache has fixed addresses");
  }
  if (redirect_ns != 0) {
    findings.Add("redirect_ns",
                 fmt::format("{} ns for a page fault that leads to the code cache without an exit, "
                             "{} calls deep",
                             redirect_ns, kFrames),
                 redirect_ns);
  }
  findings.Add("time",
               host.guest_tsc_is_host_tsc
                   ? "the guest reads the host's time stamp counter: clocks need no exit"
                   : "the guest's time stamp counter differs: clock_gettime costs a system call",
               host.guest_tsc_is_host_tsc,
               host.guest_tsc_is_host_tsc ? Verdict::kGood : Verdict::kNote);
  machine->Release(carrier);

  const int vcpus = machine->kvm().CheckExtension(KVM_CAP_MAX_VCPUS);
  findings.Add("vcpus", fmt::format("{}: that many threads at once", vcpus), vcpus,
               vcpus >= 1000 ? Verdict::kGood : Verdict::kNote,
               vcpus >= 1000 ? "" : "programs with more threads get EAGAIN from pthread_create");
  const int slots = machine->kvm().CheckExtension(KVM_CAP_NR_MEMSLOTS);
  findings.Add("memory_slots", fmt::format("{}", slots), slots,
               slots >= 500 ? Verdict::kGood : Verdict::kNote,
               slots >= 500 ? "" : "programs whose memory is spread widely may not run");
  findings.Add("physical_bits",
               fmt::format("{}: {} GiB of guest memory", machine->physical_bits(),
                           (1ull << machine->physical_bits()) >> 30),
               machine->physical_bits());
  findings.Add("vector_state",
               fmt::format("{} bytes (XSAVE components {:#x})", machine->vector_state_size(),
                           machine->vector_mask()),
               machine->vector_state_size());
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const bool few = limit.rlim_max < 2048;
  findings.Add("descriptors", fmt::format("limit {} (hard {})", limit.rlim_cur, limit.rlim_max),
               limit.rlim_max, few ? Verdict::kNote : Verdict::kGood,
               few ? "each guest thread needs one descriptor beyond the program's own: raise the "
                     "hard limit (`ulimit -Hn`)"
                   : "");
}

}  // namespace

int Doctor(bool json) {
  Findings findings;
  if (CheckDevice(findings)) CheckMachine(findings);
  findings.Print(json);
  return FlushOutput() && findings.works() ? 0 : 1;
}

}  // namespace trapline
