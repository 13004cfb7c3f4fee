// A library in C++ whose reporter visits the blocks of a map. Blocks of `new` are blocks of malloc.
#include "memreport.h"
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

class Names {
  public:
    Names() : reporter_(memreport_register(&Names::collect, this)) {}
    ~Names() { memreport_unregister(reporter_); }
    Names(const Names &) = delete;
    Names &operator=(const Names &) = delete;

    void add(std::size_t count) {
        // A collection runs the reporter on any thread.
        std::lock_guard<std::mutex> guard(lock_);
        for (std::size_t i = 0; i < count; i++) {
            names_.push_back(std::make_unique<std::string>(100, 'n'));
        }
        names_.shrink_to_fit();
    }

  private:
    // Throws nothing, and waits for no lock: the thread that has it may wait for the snapshot.
    static void collect(memreport_reports *reports, void *self) noexcept {
        std::unique_lock<std::mutex> guard(static_cast<Names *>(self)->lock_, std::try_to_lock);
        if (!guard) {
            memreport_missed(reports, "explicit/names");
            return;
        }
        memreport_measure(reports, "explicit/names", &Names::visit, self, "Names of images.");
    }

    static void visit(memreport_blocks *blocks, void *self) noexcept {
        const auto &names = static_cast<Names *>(self)->names_;
        memreport_block(blocks, names.data());
        for (const auto &name : names) {
            memreport_block(blocks, name.get());
            memreport_block(blocks, name->data());
        }
    }

    std::mutex lock_;
    std::vector<std::unique_ptr<std::string>> names_;
    // Registered last, when the other members exist.
    uint64_t reporter_;
};

std::unique_ptr<Names> names;

} // namespace

// Keeps this many names.
extern "C" void names_fill(std::size_t count) {
    names = std::make_unique<Names>();
    names->add(count);
}

// Forgets all names.
extern "C" void names_clear() {
    names.reset();
}
