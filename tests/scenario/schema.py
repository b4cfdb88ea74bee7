# SPDX-License-Identifier: Apache-2.0
"""As much of JSON Schema as data/schemas uses, so that results can be checked without packages."""
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$id", "$defs", "$ref", "$comment", "title", "description", "type", "enum", "const", "properties", "required",
	 "additionalProperties", "items", "minItems", "maxItems", "minimum", "maximum", "pattern", "minLength", "maxLength", "anyOf",
	 "oneOf", "examples", "default", "definitions", "format", "propertyNames", "patternProperties", "uniqueItems"}


def is_type(value, name):
	if name == "integer":
		return isinstance(value, int) and not isinstance(value, bool)
	if name == "number":
		return isinstance(value, (int, float)) and not isinstance(value, bool)
	return isinstance(value, TYPES[name])


def follow(root, ref):
	node = root
	for part in ref.lstrip("#/").split("/"):
		node = node[part]
	return node


def errors(value, schema, root=None, at="$"):
	"""Every place where value does not fit; an empty list is agreement.  An unknown keyword is an error too."""
	root = root or schema
	if schema is True:
		return []
	if schema is False:
		return [f"{at}: not allowed"]
	out = [f"{at}: schema keyword {k} is not understood here" for k in schema if k not in KNOWN]
	if "$ref" in schema:
		out += errors(value, follow(root, schema["$ref"]), root, at)
	types = schema.get("type")
	if types and not any(is_type(value, t) for t in ([types] if isinstance(types, str) else types)):
		return out + [f"{at}: {value!r} is not of type {types}"]
	if "enum" in schema and value not in schema["enum"]:
		out.append(f"{at}: {value!r} is not one of {schema['enum']}")
	if "const" in schema and value != schema["const"]:
		out.append(f"{at}: {value!r} is not {schema['const']!r}")
	for word, want in (("anyOf", lambda n: n >= 1), ("oneOf", lambda n: n == 1)):
		if word in schema and not want(sum(not errors(value, s, root, at) for s in schema[word])):
			out.append(f"{at}: does not fit {word}")
	if isinstance(value, str):
		out += string_errors(value, schema, at)
	if is_type(value, "number"):
		if value < schema.get("minimum", value) or value > schema.get("maximum", value):
			out.append(f"{at}: {value} is out of range")
	if isinstance(value, list):
		out += list_errors(value, schema, root, at)
	if isinstance(value, dict):
		out += object_errors(value, schema, root, at)
	return out


def string_errors(value, schema, at):
	out = []
	if "pattern" in schema and not re.search(schema["pattern"], value):
		out.append(f"{at}: {value!r} does not match {schema['pattern']}")
	if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
		out.append(f"{at}: length {len(value)} is out of range")
	return out


def list_errors(value, schema, root, at):
	out = []
	if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
		out.append(f"{at}: {len(value)} items are out of range")
	for i, item in enumerate(value):
		out += errors(item, schema.get("items", True), root, f"{at}[{i}]")
	return out


def object_errors(value, schema, root, at):
	out = [f"{at}: {k} is missing" for k in schema.get("required", []) if k not in value]
	props, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
	for key, item in value.items():
		fits = [s for p, s in patterns.items() if re.search(p, key)]
		if key in props:
			fits.append(props[key])
		if not fits:
			fits.append(schema.get("additionalProperties", True))
		for s in fits:
			out += errors(item, s, root, f"{at}.{key}")
	return out
