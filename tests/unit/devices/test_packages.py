"""Packages and JAX plugins read from an import path's directories."""

from needle.devices.packages import installed_packages


def test_versions_come_from_directory_names_and_only_what_matters_is_kept(machine):
    machine.install(
        alone=True,
        jax="0.10.2",
        jaxlib="0.10.2",
        jax_cuda12_plugin="0.10.2",
        requests="2.0",
        ml_dtypes="0.5.1",
    )
    found = installed_packages([str(machine.packages)])
    assert found.versions == {
        "jax": "0.10.2",
        "jaxlib": "0.10.2",
        "jax-cuda12-plugin": "0.10.2",
        "ml-dtypes": "0.5.1",
    }


def test_the_first_directory_of_the_path_wins(machine, tmp_path):
    first = tmp_path / "first"
    (first / "jax-0.4.38.dist-info").mkdir(parents=True)
    machine.install(jax="0.10.2")
    assert installed_packages([str(first), str(machine.packages)]).versions["jax"] == "0.4.38"


def test_an_egg_info_with_a_python_tag_counts(machine):
    (machine.packages / "jax-0.4.38-py3.11.egg-info").mkdir()
    assert installed_packages([str(machine.packages)]).versions == {"jax": "0.4.38"}


def test_directories_that_do_not_exist_or_are_files_are_passed_over(machine, tmp_path):
    archive = tmp_path / "python311.zip"
    archive.write_text("")
    machine.install(alone=True, jax="0.10.2")
    found = installed_packages([str(tmp_path / "none"), str(archive), str(machine.packages)])
    assert found.versions == {"jax": "0.10.2"}
    assert found.directories == (str(machine.packages),)


def test_a_plugin_is_found_by_its_entry_point_whatever_its_distribution_is_called(machine):
    machine.install(jax="0.10.2", acme_accelerator="1.0")
    entry_points = (
        "[console_scripts]\nacme = acme:main\n\n[jax_plugins]\nacme = acme_jax.cuda_bridge\n[other]\nx = y\n"
    )
    (machine.packages / "acme_accelerator-1.0.dist-info" / "entry_points.txt").write_text(entry_points)
    found = installed_packages([str(machine.packages)])
    assert found.plugins == ("acme_jax.cuda_bridge",)
    assert found.plugin_for("cuda") == "acme_jax.cuda_bridge"


def test_a_plugin_is_found_as_a_module_of_the_jax_plugins_namespace(machine):
    machine.install(jax="0.10.2")
    (machine.packages / "jax_plugins" / "xla_rocm7").mkdir(parents=True)
    (machine.packages / "jax_plugins" / "__pycache__").mkdir()
    found = installed_packages([str(machine.packages)])
    assert found.plugins == ("jax_plugins.xla_rocm7",)


def test_the_plugin_is_named_before_the_library_it_needs(machine):
    machine.install(jax="0.10.2", jax_cuda13_pjrt="0.10.2", jax_cuda13_plugin="0.10.2", libtpu="0.0.30")
    found = installed_packages([str(machine.packages)])
    assert found.plugin_for("cuda") == "jax-cuda13-plugin 0.10.2"
    assert found.plugin_for("tpu") == "libtpu 0.0.30"
    assert found.plugin_for("rocm") == ""
