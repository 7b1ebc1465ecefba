// When nodes are, or were, asked for on behalf of a run: only what will happen or has happened is told.

const owner = (record) => JSON.stringify([record.dag_id, record.run_id, record.node_pool]);

/** A function from a run to when its nodes were asked for, else are due to be; null where neither is so. */
export function askTimes(document_) {
  const unasked = new Set(document_.node_pools.filter((pool) => pool.provider === "none").map((pool) => pool.name));
  const askedAt = new Map(document_.reservations.filter((each) => each.asked_at !== null).map((each) => [owner(each), each.asked_at]));
  return (run) => {
    if (unasked.has(run.node_pool)) return null;
    return askedAt.get(owner(run)) ?? (run.ask_at > document_.now ? run.ask_at : null);
  };
}
