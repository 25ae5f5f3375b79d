/* Names of C++: namespaces, templates, a constructor, an anonymous namespace, a lambda. */
#include "marks.h"

static volatile int sink;
static volatile int trigger = 7;

namespace geometry
{

template <typename Number> class Box
{
  public:
    NOINLINE Box(Number width, Number height) : width_(width), height_(height)
    {
        MARK_HERE("constructor");
    }

    ALWAYS_INLINE Number scaled(Number factor) const
    {
        MARK_HERE("scaled");
        return width_ * factor;
    }

    NOINLINE Number area(Number factor) const
    {
        return CALL("call_scaled", scaled(factor)) * height_;
    }

  private:
    Number width_;
    Number height_;
};

namespace
{

NOINLINE int hidden(const char *, Box<long> &box)
{
    MARK_HERE("hidden");
    return static_cast<int>(box.area(trigger));
}

} // namespace
} // namespace geometry

int main()
{
    geometry::Box<long> box(trigger, trigger);
    sink = geometry::hidden("", box);
    auto lambda = [](int value) __attribute__((noinline))
    {
        MARK_HERE("lambda");
        return value + trigger;
    };
    sink = lambda(trigger);
    return print_marks();
}
