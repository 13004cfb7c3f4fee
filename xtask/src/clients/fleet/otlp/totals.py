import json
import sys

from opentelemetry.proto.profiles.v1development import profiles_pb2

data = profiles_pb2.ProfilesData()
with open(sys.argv[1], "rb") as file:
    data.ParseFromString(file.read())
tables = data.dictionary
strings = tables.string_table
totals = {"scopes": {}, "spans": {}}
assert tables.link_table[0] == profiles_pb2.Link()
for resource in data.resource_profiles:
    for attribute in resource.resource.attributes:
        if attribute.key == "service.name":
            totals["service"] = attribute.value.string_value
    for scope in resource.scope_profiles:
        for profile in scope.profiles:
            name = strings[profile.sample_type.type_strindex]
            totals[name] = sum(sample.values[0] for sample in profile.samples)
            for sample in profile.samples:
                # Every index leads to an entry, from the stack to the name of a function.
                for location in tables.stack_table[sample.stack_index].location_indices:
                    for line in tables.location_table[location].lines:
                        assert strings[tables.function_table[line.function_index].name_strindex]
                if name != "inuse_space":
                    continue
                entries = [tables.attribute_table[index] for index in sample.attribute_indices]
                values = {strings[entry.key_strindex]: entry.value for entry in entries}
                if "memreport.scope" not in values:
                    assert sample.link_index == 0
                    continue
                text = values["memreport.scope"].string_value
                sums = totals["scopes"]
                sums[text] = sums.get(text, 0) + sample.values[0]
                # Of the traced program's blocks, those that it counts itself.
                if values["memreport.block.size"].int_value > 1000:
                    link = tables.link_table[sample.link_index]
                    ids = [link.trace_id.hex() or "-", link.span_id.hex() or "-"]
                    text = "\t".join([text, *ids])
                    sums = totals["spans"]
                    sums[text] = sums.get(text, 0) + sample.values[0]
print(json.dumps(totals))
