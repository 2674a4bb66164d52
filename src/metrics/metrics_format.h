/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_METRICS_FORMAT_H
#define IBSCOPE_METRICS_FORMAT_H

enum metrics_format {
	METRICS_TEXT,	     /* text/plain; version=0.0.4 */
	METRICS_OPENMETRICS, /* application/openmetrics-text; version=1.0.0 */
	METRICS_JSON,	     /* for the page: histograms with all their buckets */
	METRICS_FORMATS
};

#endif
