/* ---- parallel histograms: a selection in one filters all others ---- */
const AXIS_HEIGHT = 264, AXIS_ITEMS = 40;
/* @column of the rows has numbers below @n; @range: several neighbours can be selected at once. */
function makeAxes() {
	const [first, last] = usedBuckets(), hosts = D.hosts.length > 1 && D.nodes.length > AXIS_ITEMS;
	const named = (dimension, title, range) => ({ dimension, title, column: dimension, n: D.names[dimension].length, range, label: i => D.names[dimension][i] || 'none' });
	const region = named('region', 'Region'); /* "solve /src/app/solve.c:12" has no room: "solve:12" */
	return [
		{ dimension: 'bucket', title: 'Latency, cycles', column: 'bucket', n: L, from: first, to: last, range: true, up: true, label: i => count(D.edges[i]) },
		{ dimension: 'source', title: 'Source', column: 'source', n: S, label: i => D.sources[i] },
		named('rank', 'MPI rank', true),
		named('role', 'Thread'),
		{ ...region, label: i => region.label(i).replace(/^(.+?) \S*\/.*:(\d+)$/, '$1:$2'), full: region.label },
		hosts ? { dimension: 'place', title: 'Host', column: 'host', n: D.hosts.length, value: i => ['host', i * PER_HOST], label: i => D.hosts[i] } :
			{ dimension: 'place', title: 'Node of the CPU', column: 'node', n: D.nodes.length, value: nodePlace, label: i => placeName(nodePlace(i)) },
		{ dimension: 'memory', title: 'Node of the memory', column: 'memory', n: D.memories + 1, label: i => i < D.memories ? `node ${i}` : 'unknown' },
	];
}
/* If there are too many values, neighbours of a range share a bar; otherwise only the most expensive are shown. */
function axisItems(axis, cost) {
	const total = i => cost.subarray(i * S, i * S + S).reduce((a, b) => a + b, 0);
	const used = [...Array(axis.n).keys()].filter(i => axis.from === undefined ? total(i) : i >= axis.from && i <= axis.to);
	if (axis.range) {
		const step = Math.ceil(used.length / (AXIS_HEIGHT / 3)), items = [];
		for (let i = 0; i < used.length; i += step)
			items.push([used[i], used[Math.min(i + step, used.length) - 1]]);
		return axis.up ? items.reverse() : items;
	}
	return (used.length > AXIS_ITEMS ? used.sort((a, b) => total(b) - total(a)).slice(0, AXIS_ITEMS) : used).map(i => [i, i]);
}
/*
 * Below the table if that is shorter than the views beside it, so that neither column has a hole; else
 * below both.
 */
const BESIDE_TABLE = 500; /* usual height of the time views */
function placeAxes() {
	const section = id('axes-section'), first = id('first'), left = id('left');
	const two = first.clientWidth > 2 * id('time').clientWidth, here = two && id('containers').offsetHeight < BESIDE_TABLE;
	if (here !== (section.parentNode === left))
		here ? left.append(section) : first.after(section);
}
function drawAxes() {
	placeAxes();
	const shown = AXES.map((axis, a) => ({ axis, a, items: axisItems(axis, whole.axis[a].cost) })).filter(x => x.items.length > 1);
	id('axes-section').hidden = !shown.length;
	id('axes').replaceChildren(...shown.map(x => html('figure', { id: 'axis-' + x.axis.dimension })));
	for (const { axis, a, items } of shown)
		drawAxis(axis, items, whole.axis[a].cost, R.axis[a].cost);
	if (!id('axes-read').textContent)
		id('axes-read').textContent = 'Bars are miss cycles by source; pale bars are the whole recording. Click a bar to filter every view, drag or press Shift with arrow keys for several.';
}
function drawAxis(axis, items, all, now) {
	const holder = id('axis-' + axis.dimension), width = Math.max(140, holder.clientWidth), s = seconds();
	const sum = (cost, [from, to], k) => {
		let v = 0;
		for (let i = from; i <= to; i++)
			v += cost[i * S + k];
		return v;
	};
	const sums = cost => items.map(item => D.sources.map((_, k) => sum(cost, item, k))), total = list => list.reduce((a, b) => a + b, 0);
	const before = sums(all).map(total), bars = sums(now), totals = bars.map(total), everything = total(totals);
	/* one scale for both, so that the pale bar shows the part that is not selected */
	const max = Math.max(...before.map(v => v / D.duration_s), ...totals.map(v => v / s), 1e-9);
	const height = Math.max(3, Math.min(20, Math.floor(AXIS_HEIGHT / items.length))), top = 20, gap = height > 5 ? 1 : 0;
	const text = ([from, to], label = axis.label) => from === to || axis.up ? label(to) : label(from) + UNKNOWN + label(to);
	const gutter = Math.min(width * .48, Math.max(30, 7.2 * Math.max(...items.map(i => text(i).length)) + 6)), room = Math.floor((gutter - 4) / 6.2), bar = v => (width - gutter) * v / max;
	const drawing = picture(width, top + items.length * height + 2, { role: 'application', tabindex: 0,
		'aria-label': `Miss cycles by ${axis.title}. Arrow keys move, Enter selects${axis.range ? ', Shift and arrows select several' : ''}, Escape clears.` });
	drawing.append(svg('text', { x: 0, y: 12, class: 'strong' }, axis.title));
	const paths = D.sources.map(() => '');
	let ghosts = '', free = 0;
	const value = item => axis.value ? axis.value(item[0]) : item[0], chosen = selected[axis.dimension];
	const isOn = item => chosen !== null && (axis.range ? item[0] >= chosen[0] && item[1] <= chosen[1] : `${chosen}` === `${value(item)}`);
	const boxes = items.map((item, i) => ({ item, i, level: i, x: 0, y: top + i * height, w: width }));
	const set = (from, to) => choose({ [axis.dimension]: axis.range ? [Math.min(from[0], to[0]), Math.max(from[1], to[1])] : value(to) });
	const pick = b => isOn(b.item) && (!axis.range || b.item[0] === chosen[0] && b.item[1] === chosen[1]) ? choose({ [axis.dimension]: null }) : set(b.item, b.item);
	const read = b => id('axes-read').replaceChildren(html('b', {}, `${axis.title} ${axis.dimension === 'bucket' ? latencyText(b.item) : text(b.item, axis.full)}`),
		`: ${figure(totals[b.i] / s)}/s, ${percent(totals[b.i], everything)}${THIN}% of what is selected; ${figure(before[b.i] / D.duration_s)}/s in all`);
	for (const b of boxes) {
		let x = gutter;
		ghosts += box(px(gutter), b.y, px(bar(before[b.i] / D.duration_s)), height - gap);
		bars[b.i].forEach((v, k) => {
			const w = bar(v / s);
			if (w > .1)
				paths[k] += box(px(x), b.y + (height > 8 ? 2 : 0), px(w), height - gap - (height > 8 ? 4 : 0));
			x += w;
		});
	}
	drawing.append(svg('path', { class: 'ghost', d: ghosts }), ...paths.map((d, k) => svg('path', { class: 'src-' + D.sources[k], d })));
	for (const b of boxes) {
		const name = text(b.item);
		b.g = svg('g', { class: 'item', on: { pointerenter: () => read(b) } }, svg('rect', { x: 0, y: b.y, width, height: height - gap }));
		drawing.append(b.g);
		if (b.y >= free && (height >= 12 || items.length - b.i > 12 / height || !free)) {
			drawing.append(svg('text', { x: px(gutter - 4), y: b.y + Math.min(14, height + 6), 'text-anchor': 'end', class: isOn(b.item) ? 'strong' : '' },
				name.length > room ? '…' + name.slice(1 - room) : name));
			free = b.y + 13;
		}
	}
	const on = boxes.filter(b => isOn(b.item));
	if (on.length)
		drawing.append(svg('path', { class: 'brush', d: box(1, on[0].y, width - 2, on[on.length - 1].y + height - gap - on[0].y) }));
	if (axis.dimension === 'rank' && everything) {
		const each = D.names.rank.map((_, i) => total(D.sources.map((_, k) => now[i * S + k]))).slice(1);
		drawing.append(svg('text', { x: width, y: 12, 'text-anchor': 'end' }, `max/mean ${(Math.max(...each) * each.length / total(each)).toFixed(2)}`));
	}
	let from = null;
	const under = e => boxes[Math.max(0, Math.min(boxes.length - 1, Math.floor((e.clientY - drawing.getBoundingClientRect().top - top) / height)))];
	drawing.addEventListener('pointerdown', e => from = under(e));
	drawing.addEventListener('pointerup', e => {
		const to = under(e), start = from;
		from = null;
		if (start && (to === start || !axis.range))
			pick(to);
		else if (start)
			set(start.item, to.item);
	});
	walkable(drawing, 'axis-' + axis.dimension, boxes, read, pick, axis.range ? set : null);
	holder.replaceChildren(drawing);
}
