// Counts words, by operators new and delete of every kind.
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

struct alignas(64) Line {
    char text[100];
};

int main() {
    std::map<std::string, std::vector<int>> words;
    for (int i = 0; i < 20000; i++) words["word " + std::to_string(i % 700)].push_back(i);
    auto line = std::make_unique<Line>();
    auto lines = std::make_unique<Line[]>(10);
    void *nothing = ::operator new(0);
    ::operator delete(nothing);
    int refused = 0;
    try {
        std::vector<char> big(static_cast<size_t>(1) << 62);
        refused += big.empty();
    } catch (const std::bad_alloc &) {
        refused = 1;
    }
    refused += new (std::nothrow) char[static_cast<size_t>(1) << 61] == nullptr;
    size_t sum = 0;
    for (auto &word : words) sum += word.first.size() * word.second.size();
    std::printf("%zu words, %zu, refused %d, aligned %d\n", words.size(), sum, refused,
                reinterpret_cast<size_t>(line.get()) % 64 == 0);
    return 0;
}
