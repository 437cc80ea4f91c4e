/* How jemalloc is to behave in the daemons (docs/adr/0005-allocator.md). Two arenas: the loop and
   the planner are the two that allocate much; more would only keep more memory idle. */
extern const char* malloc_conf;
const char* malloc_conf = "narenas:2";
