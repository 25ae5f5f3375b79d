// C++ frames: exceptions leave the frames between, which makes stale stack memory of a new kind.
#include "tree.h"

namespace
{

struct thrown {
};

// Its destructor runs while an exception passes, called from the cleanup part of the frame.
struct watcher {
    struct tree *tree;
    ~watcher()
    {
        tree_see(tree);
    }
};

} // namespace

extern "C" void tree_catch(struct tree *tree, unsigned depth)
{
    unsigned catchers = tree->catchers;
    tree->catchers = catchers + 1;
    try {
        watcher watch = {tree};
        tree_descend(tree, depth + 1);
    } catch (const thrown &) {
        tree->catchers = catchers;
        tree_see(tree);
    }
    tree->catchers = catchers;
}

extern "C" void tree_throw(struct tree *tree)
{
    tree->throws++;
    tree_see(tree);
    throw thrown();
}
