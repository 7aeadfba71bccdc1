// Places the steps of a journey on a plane: ranks from the first step down, as few crossings as a few sweeps find.
// Knows nothing of the page: values in, values out.

export const NODE = { width: 216, height: 104 };
const GAP = { x: 28, y: 52 };
const BEND = 20; // the width of a place at which a long edge passes a rank
const BACK = 70; // room at the right for ways that lead up again
const SWEEPS = 6;

// The ways out of a step: [{ way, to, name }]. `way` is what the trail calls it; `name` is the name of a branch.
export function waysOut(step) {
  switch (step.tipo) {
    case "condicao":
      return [{ way: "sim", to: step.sim }, { way: "nao", to: step.nao }];
    case "dividir":
      return (step.ramos ?? []).map((branch) => ({ way: "ramo", to: branch.proximo, name: branch.nome ?? "" }));
    case "webhook":
      return [{ way: "proximo", to: step.proximo }, { way: "seFalhar", to: step.seFalhar }];
    case "fim":
      return [];
    default:
      return [{ way: "proximo", to: step.proximo }];
  }
}

// { nodes: [{ id, step, x, y }], edges: [{ from, to, way, name, points, back }], width, height }.
// A draft may have steps that nothing leads to, ways that lead nowhere and circles: all of them have a place.
export function layout(steps, first) {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const edges = steps.flatMap((step) =>
    waysOut(step).filter(({ to }) => byId.has(to)).map((way) => ({ from: step.id, ...way, back: false })),
  );
  const ranks = ranked(byId, edges, first);
  const rows = ordered(ranks, edges);
  return placed(rows, edges, byId);
}

// The longest way from the first step to each; an edge that closes a circle is marked `back` and counts nothing.
function ranked(byId, edges, first) {
  const out = new Map([...byId.keys()].map((id) => [id, []]));
  for (const edge of edges) out.get(edge.from).push(edge);
  const finished = [];
  const seen = new Map(); // id: true while it is on the way that is being walked
  const walk = (id) => {
    seen.set(id, true);
    for (const edge of out.get(id)) {
      if (seen.get(edge.to) === true) edge.back = true;
      else if (!seen.has(edge.to)) walk(edge.to);
    }
    seen.set(id, false);
    finished.push(id);
  };
  for (const id of [first, ...byId.keys()]) if (byId.has(id) && !seen.has(id)) walk(id);
  const ranks = new Map([...seen.keys()].map((id) => [id, 0]));
  for (const id of finished.reverse()) {
    const rank = ranks.get(id);
    for (const edge of out.get(id)) if (!edge.back) ranks.set(edge.to, Math.max(ranks.get(edge.to), rank + 1));
  }
  return ranks;
}

// Rows of cells: steps, and the places where long edges pass. Each row is sorted by where its neighbours stand.
function ordered(ranks, edges) {
  const rows = [];
  const put = (rank, cell) => (rows[rank] ??= []).push(cell);
  const cells = new Map();
  for (const [id, rank] of ranks) {
    const cell = { id, above: [], below: [] };
    cells.set(id, cell);
    put(rank, cell);
  }
  for (const edge of edges) {
    edge.bends = [];
    if (edge.back) continue;
    let last = cells.get(edge.from);
    for (let rank = ranks.get(edge.from) + 1; rank < ranks.get(edge.to); rank += 1) {
      const bend = { above: [], below: [] };
      put(rank, bend);
      edge.bends.push(bend);
      join(last, bend);
      last = bend;
    }
    join(last, cells.get(edge.to));
  }
  const number = () => rows.forEach((row) => row.forEach((cell, at) => { cell.at = at; }));
  number();
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2 === 0 ? "above" : "below";
    for (const row of rows) {
      for (const cell of row) cell.wish = mean(cell[side].map((other) => other.at), cell.at);
      row.sort((one, other) => one.wish - other.wish);
      row.forEach((cell, at) => { cell.at = at; });
    }
  }
  return rows;
}

function join(upper, lower) {
  upper.below.push(lower);
  lower.above.push(upper);
}

function mean(values, otherwise) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : otherwise;
}

function placed(rows, edges, byId) {
  const widthOf = (cell) => (cell.id === undefined ? BEND : NODE.width);
  const widths = rows.map((row) => row.reduce((sum, cell) => sum + widthOf(cell) + GAP.x, -GAP.x));
  const width = Math.max(NODE.width, ...widths) + 2 * GAP.x;
  const nodes = [];
  const cells = new Map();
  rows.forEach((row, rank) => {
    let x = (width - widths[rank]) / 2;
    for (const cell of row) {
      cell.x = x + widthOf(cell) / 2;
      cell.y = GAP.y / 2 + rank * (NODE.height + GAP.y);
      x += widthOf(cell) + GAP.x;
      if (cell.id === undefined) continue;
      cells.set(cell.id, cell);
      nodes.push({ id: cell.id, step: byId.get(cell.id), x: cell.x - NODE.width / 2, y: cell.y });
    }
  });
  const drawn = edges.map(({ from, to, way, name, back, bends }) => {
    const [upper, lower] = [cells.get(from), cells.get(to)];
    const right = (cell) => ({ x: cell.x + NODE.width / 2, y: cell.y + NODE.height / 2 });
    const points = back ? [right(upper), right(lower)] : [
      { x: upper.x, y: upper.y + NODE.height },
      ...bends.flatMap((bend) => [{ x: bend.x, y: bend.y }, { x: bend.x, y: bend.y + NODE.height }]),
      { x: lower.x, y: lower.y },
    ];
    return { from, to, way, name, back, points };
  });
  const room = drawn.some(({ back }) => back) ? BACK : 0;
  return { nodes, edges: spread(drawn), width: width + room, height: rows.length * (NODE.height + GAP.y) };
}

// Edges that leave one step begin side by side, in the order in which they go apart.
function spread(edges) {
  const leaving = new Map();
  for (const edge of edges.filter(({ back }) => !back)) leaving.set(edge.from, [...(leaving.get(edge.from) ?? []), edge]);
  for (const some of leaving.values()) {
    some.sort((one, other) => one.points[1].x - other.points[1].x);
    some.forEach((edge, at) => {
      edge.points[0].x += ((at + 0.5) / some.length - 0.5) * NODE.width * 0.8;
    });
  }
  return edges;
}
