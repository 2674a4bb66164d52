/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
async function poll() {
	try {
		const r = await fetch('api/snapshot.json', { cache: 'no-store' });
		if (!r.ok)
			throw new Error((await r.text()).trim() || `HTTP status ${r.status}`);
		const d = await r.json();
		d.read_ms = Date.now();
		await pollHistory();
		if (!past.on && latest && latest.collector && d.collector && d.time_s > latest.time_s)
			intervals.push({ begin: latest.time_s, end: d.time_s, containers: isFetch(d) ? [] : since(d, latest, 'sources'), fetches: since(fetchesOf(d), fetchesOf(latest), 'fetches') });
		while (!past.on && intervals.length && !frozen && d.time_s - intervals[0].end > KEEP_S)
			intervals.shift();
		latest = d;
		if (!dragging)
			draw();
	} catch (e) {
		id('state').className = 'bad';
		id('state').textContent = 'no response from the exporter';
		id('band').hidden = false;
		id('band').textContent = String(e.message || e);
	}
	setTimeout(poll, !intervals.length ? FIRST_MS : document.hidden ? 4 * EVERY_MS : EVERY_MS);
}
id('filter').oninput = draw;
id('window').onchange = () => {
	menu = id('window').value;
	draw();
};
id('freeze').onclick = () => {
	frozen = frozen ? null : { ...latest, until: lastEnd() };
	id('freeze').setAttribute('aria-pressed', frozen !== null);
	draw();
};
addEventListener('resize', draw);
poll();
