import json
import sys

from opentelemetry.proto.profiles.v1development import profiles_pb2

data = profiles_pb2.ProfilesData()
with open(sys.argv[1], "rb") as file:
    data.ParseFromString(file.read())
tables = data.dictionary
strings = tables.string_table
totals = {"scopes": {}}
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
                for index in sample.attribute_indices:
                    entry = tables.attribute_table[index]
                    if strings[entry.key_strindex] == "memreport.scope" and name == "inuse_space":
                        text = entry.value.string_value
                        sums = totals["scopes"]
                        sums[text] = sums.get(text, 0) + sample.values[0]
print(json.dumps(totals))
