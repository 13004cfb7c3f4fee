// A library in C++ whose reporter visits the blocks of a map. Blocks of `new` are blocks of malloc.
#include "memreport.h"
#include <memory>
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
        for (std::size_t i = 0; i < count; i++) {
            names_.push_back(std::make_unique<std::string>(100, 'n'));
        }
        names_.shrink_to_fit();
    }

  private:
    static void collect(memreport_reports *reports, void *self) {
        memreport_measure(reports, "explicit/names", &Names::visit, self, "Names of images.");
    }

    static void visit(memreport_blocks *blocks, void *self) {
        const auto &names = static_cast<Names *>(self)->names_;
        memreport_block(blocks, names.data());
        for (const auto &name : names) {
            memreport_block(blocks, name.get());
            memreport_block(blocks, name->data());
        }
    }

    std::vector<std::unique_ptr<std::string>> names_;
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
