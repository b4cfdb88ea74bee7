/* SPDX-License-Identifier: Apache-2.0 */
/* Options that several commands have; AT() is the command's own. */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#define ROW_STATE                                                                    \
	{                                                                            \
		"state", 0, OPTION_TEXT, "DIR", AT(state), NULL,                     \
			"state folder; without it $BRIG_STATE, then the usual place" \
	}
#define ROW_POLICY                                                                                 \
	{                                                                                          \
		"policy", 'p', OPTION_TEXT, "FILE", AT(policy), NULL,                              \
			"policy file; without it $BRIG_POLICY, then /etc/brig/sandbox.yaml, then " \
			"~/.config/brig/sandbox.yaml"                                              \
	}
#define ROW_JSON                                                                                     \
	{                                                                                            \
		"json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of text" \
	}
#define ROW_NO_COLOR                                                               \
	{                                                                          \
		"no-color", 0, OPTION_FLAG, NULL, AT(no_color), NULL, "no colours" \
	}

#endif
