#include <string>
extern "C" {
int c_function(int a);
}

namespace app {
namespace {

template <typename T>
class Store final : public Base {
 public:
  explicit Store(int limit) : limit_(limit) {}
  ~Store() override = default;
  std::string load(const std::string& key) const {
    return R"(} class X {)";
  }
  bool operator==(const Store& o) const { return true; }

 private:
  int limit_;
};

struct Point { int x, y; };
enum class Color { Red };
using Names = std::vector<std::string>;

}  // namespace

std::string Store::name() const { return "x"; }
}  // namespace app
