/* ---- keyboard navigation in pictures ---- */
/*
 * @boxes have x, y, w, g (their element) and level: left and right lead to others of that level, up and down to what is
 * above and below. @extend, if given, is called with the box where Shift was pressed first and the one reached.
 */
const walks = {};	/* by picture: position of the keyboard, kept across redraws */
function walkable(drawing, name, boxes, read, pick, extend) {
	let current = walks[name] && boxes.find(b => b.x === walks[name].x && b.y === walks[name].y);
	const move = to => {
		current?.g.classList.remove('at');
		current = to;
		walks[name] = { ...walks[name], x: to.x, y: to.y };
		to.g.classList.add('at');
		to.g.parentNode.append(to.g); /* draw its border on top */
		read(to);
	};
	if (current)
		move(current);
	drawing.addEventListener('keydown', e => {
		const at = current || boxes[0], distance = b => Math.abs(b.x - at.x);
		const next = { ArrowLeft: b => b.level === at.level && boxes.indexOf(b) < boxes.indexOf(at), ArrowRight: b => b.level === at.level && boxes.indexOf(b) > boxes.indexOf(at),
			ArrowUp: b => b.y < at.y && b.x <= at.x + .1 && b.x + b.w > at.x, ArrowDown: b => b.y > at.y && b.x >= at.x - .1 && b.x < at.x + at.w }[e.key];
		if ((e.key === 'Enter' || e.key === ' ') && current) {
			e.preventDefault();
			pick(current);
		}
		if (!next)
			return;
		e.preventDefault();
		const all = boxes.filter(next).sort((a, b) => Math.abs(a.y - at.y) - Math.abs(b.y - at.y) || distance(a) - distance(b));
		if (!current || all.length)
			move(current ? all[0] : at);
		walks[name].from = e.shiftKey ? walks[name].from ?? at.item : undefined;
		if (e.shiftKey && extend)
			extend(walks[name].from, current.item);
	});
}

/* ---- machines ---- */
const LEVELS = [['socket', 'socket'], ['node', 'node'], ['l3', 'L3'], ['cpu', 'CPU']];
const hostOf = place => D.hosts[Math.floor(place[1] / PER_HOST)] || 'unknown host';
const shortName = ([level, n]) => level === 'host' ? hostOf([level, n]) : `${LEVELS.find(l => l[0] === level)[1]} ${n % PER_HOST}`;
const placeName = place => (D.hosts.length > 1 && place[0] !== 'host' ? hostOf(place) + ' ' : '') + shortName(place);
const costOf = (cpus, of = R.cpu) => cpus.reduce((a, c) => a + (of.get(c.place) || 0), 0);
/* The host to show: that of the selection, else the one with most miss cycles. */
function shownHost() {
	const cost = D.hosts.map(() => 0);
	for (const c of D.cpus)
		cost[c.host / PER_HOST] += whole.cpu.get(c.place) || 0;
	return selected.place ? selected.place[1] - selected.place[1] % PER_HOST : cost.indexOf(Math.max(...cost)) * PER_HOST;
}
/* A box for each host if there are several, as many per line as fit. */
function hostBoxes(width) {
	const perLine = Math.max(1, Math.min(D.hosts.length, Math.floor(width / 92))), w = width / perLine;
	return D.hosts.length < 2 ? [] : D.hosts.map((_, h) => ({ place: ['host', h * PER_HOST], level: -1, cpus: D.cpus.filter(c => c.host === h * PER_HOST),
		x: h % perLine * w, y: 21 * Math.floor(h / perLine), w: w - 1 }));
}
/* Boxes of all levels: as many CPUs per line as fit, broken between L3 complexes. */
function placeBoxes(width, host, top) {
	const cpus = D.cpus.filter(c => c.host === host), levels = LEVELS.filter(([key]) => key === 'cpu' || cpus.every(c => c[key] !== undefined));
	const list = cpus.sort((a, b) => levels.reduce((d, [key]) => d || a[key] - b[key], 0));
	const size = list.length && Math.max(1, list.filter(c => c.l3 === list[0].l3 && c.node === list[0].node).length);
	const room = Math.max(1, Math.floor(width / 10)), perLine = Math.min(list.length, size > room ? room : room - room % size) || 1;
	const cell = width / perLine, height = 21 * (levels.length - 1) + 20, boxes = [];
	for (let from = 0, y = top; from < list.length; from += perLine, y += height + 6) {
		const part = list.slice(from, from + perLine);
		levels.forEach(([key], level) => {
			for (let a = 0, b; a < part.length; a = b) {
				for (b = a + 1; b < part.length && part[b][key] === part[a][key];)
					b++;
				boxes.push({ place: [key, part[a][key]], level, cpus: list.filter(c => c[key] === part[a][key]), x: a * cell,
					y: y + 21 * level, w: (b - a) * cell - (b - a > 1 || cell > 4 ? 1 : 0) });
			}
		});
	}
	return { boxes, height: top + Math.ceil(list.length / perLine) * (height + 6), known: levels.length > 1 };
}
/* Steps of equal ratio from the smallest value that is not zero to the largest, so that all of the ramp is used. */
function rampOf(values) {
	const used = values.filter(v => v > 0), low = Math.min(...used), high = Math.max(...used);
	return {
		of: v => !(v > 0) ? 0 : high > low ? Math.max(1, Math.min(8, 1 + Math.floor(8 * Math.log(v / low) / Math.log(high / low)))) : 4,
		low: used.length ? low : 0, high: used.length ? high : 0,
	};
}
/* A coloured box with a name on its left and a value on its right, if they fit. */
function paintBox(drawing, b, { step, name, value, on, pick, read }) {
	const css = step ? onRamp(step) : 'ink';
	b.g = svg('g', { class: 'place' + (on ? ' on' : ''), on: { click: () => pick(b), pointerenter: () => read(b) } },
		svg('rect', { class: 'a' + step, x: px(b.x), y: b.y, width: px(b.w), height: 20 }));
	if (name && b.w > 7 * name.length + 8)
		b.g.append(svg('text', { x: px(b.x + 4), y: b.y + 14, class: css }, name));
	if (value && b.w > 7 * (name.length + value.length) + 16)
		b.g.append(svg('text', { x: px(b.x + b.w - 4), y: b.y + 14, 'text-anchor': 'end', class: css }, value));
	drawing.append(b.g);
}
const isPlace = place => selected.place !== null && `${selected.place}` === `${place}`;
function drawTopology() {
	const holder = id('machine'), width = Math.max(280, holder.clientWidth), s = seconds();
	id('topology').hidden = !D.cpus.length;
	if (!D.cpus.length)
		return;
	const hosts = hostBoxes(width), host = shownHost(), top = hosts.length ? hosts[hosts.length - 1].y + 46 : 0, machine = placeBoxes(width, host, top);
	const boxes = [...hosts, ...machine.boxes];
	for (const b of boxes)
		b.cost = costOf(b.cpus) / s;
	/* colours are cycles per CPU, so that levels can be compared */
	const perCpu = b => b.cost / Math.max(1, b.cpus.length);
	const r = rampOf(boxes.map(perCpu)), scale = scaleOf(Math.max(...boxes.map(b => b.cost)));
	const drawing = picture(width, machine.height, { role: 'application', tabindex: 0,
		'aria-label': `${D.cpus.length} CPUs${hosts.length ? ` of ${hosts.length} hosts` : ''}, coloured by miss cycles. Arrow keys move, Enter selects, Escape clears.` });
	const pick = b => toggle('place', b.place);
	const read = b => id('topology-read').replaceChildren(html('b', {}, placeName(b.place)),
		`: ${figure(b.cost)}/s on ${count(b.cpus.length)} CPU${b.cpus.length === 1 ? '' : 's'}, ${percent(costOf(b.cpus, R.cpuRemote) / s, b.cost)}${THIN}% from another node`);
	if (hosts.length)
		drawing.append(svg('text', { x: 0, y: top - 8, class: 'strong' }, `CPUs of ${hostOf(['host', host])}`));
	for (const b of boxes)
		paintBox(drawing, b, { step: r.of(perCpu(b)), name: b.place[0] === 'cpu' ? String(b.place[1] % PER_HOST) : shortName(b.place),
			value: scale.text(b.cost) + (scale.prefix ? THIN + scale.prefix : '') + '/s', on: isPlace(b.place), pick, read });
	walkable(drawing, 'machine', boxes, read, pick);
	holder.replaceChildren(drawing);
	id('topology-ramp').replaceChildren(rampKey(r, v => figure(v) + '/s'), ' per CPU');
	if (!walks.machine)
		id('topology-read').textContent = machine.known ? 'Point at a part to read its values; click it to filter every view.' : 'Sockets, nodes and L3 complexes were not recorded.';
	drawMatrix();
}

/* ---- transfers: node of the CPU x node of the memory ---- */
const MATRIX_ROWS = 24;
const nodePlace = i => [D.cpus.some(c => c.node === D.nodes[i]) ? 'node' : 'host', D.nodes[i]];
/* All nodes; if there are too many, those of the shown host, with all other hosts added up by node number. */
function matrixRows() {
	const host = shownHost(), near = [], others = new Map();
	D.nodes.forEach((node, i) => {
		if (D.nodes.length <= MATRIX_ROWS || node - node % PER_HOST === host)
			near.push({ name: placeName(nodePlace(i)), place: nodePlace(i), nodes: [i] });
		else if (others.has(node % PER_HOST))
			others.get(node % PER_HOST).nodes.push(i);
		else
			others.set(node % PER_HOST, { name: `others node ${node % PER_HOST}`, place: null, nodes: [i] });
	});
	return [...near, ...others.values(), { name: 'CPU unknown', place: null, nodes: [D.nodes.length] }];
}
function drawMatrix() {
	const holder = id('matrix'), s = seconds();
	id('transfers').hidden = !D.memories;
	if (!D.memories)
		return;
	/* a column for unknown memory nodes only if there are any */
	const columns = D.memories + [...whole.matrix.keys()].some(key => key % 256 === D.memories), width = Math.min(Math.max(280, holder.clientWidth), 150 + 130 * columns);
	const sum = (nodes, m) => nodes.map(i => R.matrix.get(i * 256 + m)).filter(v => v)
		.reduce((a, v) => ({ cycles: a.cycles + v.cycles, samples: a.samples + v.samples, n: a.n + v.n, latencies: a.latencies + v.latencies }), { cycles: 0, samples: 0, n: 0, latencies: 0 });
	const rows = matrixRows().map(row => ({ ...row, cells: Array.from({ length: columns }, (_, m) => sum(row.nodes, m)) }));
	const shown = rows.filter(row => row.name !== 'CPU unknown' || row.cells.some(c => c.samples)), cells = shown.flatMap(row => row.cells);
	const all = cells.reduce((a, c) => a + c.cycles, 0), r = ramp(Math.max(...cells.map(c => c.cycles), 1e-9)), gutter = Math.min(150, width * .36), w = (width - gutter) / columns, boxes = [];
	const drawing = picture(width, 21 * (shown.length + 1) + 4, { role: 'application', tabindex: 0,
		'aria-label': 'Miss cycles by node of the CPU and node of the memory. Arrow keys move, Enter selects, Escape clears.' });
	const memoryName = m => m < D.memories ? `node ${m}` : 'unknown';
	for (let m = 0; m < columns; m++)
		drawing.append(svg('text', { x: px(gutter + m * w + 4), y: 14 }, memoryName(m)));
	const pick = b => {
		if (b.place)
			choose(isPlace(b.place) && selected.memory === b.m ? { place: null, memory: null } : { place: b.place, memory: b.m });
	};
	const read = ({ name, m, cell }) => id('matrix-read').replaceChildren(html('b', {}, `${name} to memory of ${memoryName(m)}`), cell.samples ?
		`: ${figure(cell.cycles / s)}/s, ${percent(cell.cycles, all)}${THIN}% of what is selected, ${count(cell.samples)} misses sampled, ${count(cell.latencies / cell.n)} cycles on average` : ': nothing');
	shown.forEach(({ name, place, cells }, line) => {
		const room = Math.floor(gutter / 6.4), y = 21 * (line + 1);
		drawing.append(svg('text', { x: 0, y: y + 14, class: 'ink' }, name.length > room ? '…' + name.slice(1 - room) : name));
		cells.forEach((cell, m) => {
			boxes.push({ x: gutter + m * w, y, w: w - 1, level: line, place, m, name, cell });
			paintBox(drawing, boxes[boxes.length - 1], { step: r.of(cell.cycles), name: cell.samples ? percent(cell.cycles, all) + THIN + '%' : '',
				value: cell.samples ? count(cell.latencies / cell.n) : '', on: place && isPlace(place) && selected.memory === m, pick, read });
		});
	});
	walkable(drawing, 'matrix', boxes, read, pick);
	holder.replaceChildren(drawing);
	if (!walks.matrix)
		id('matrix-read').textContent = 'Share of the miss cycles, and mean latency in cycles.';
}
